"""Derive the closed form of a count, and each product in it, from the ledger's shapes.

No architecture is known here: the sizes carry the config keys that they came from (`dims`), and
they are expanded and collected as `polynomials`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

from tallystick.core.algebra.dims import Dim, expression_of
from tallystick.core.algebra.expressions import Expression, keys
from tallystick.core.algebra.notations import LATEX, LATEX_NUMBERS, NUMBERS, TEXT, write
from tallystick.core.algebra.polynomials import collect, plus, times
from tallystick.core.display import Displayed
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.core.module_tree import runs_of_layers
from tallystick.core.tensor_names import template_of


@dataclass(frozen=True)
class Step:
    """One product of the sum: one tensor, or one tensor per layer."""

    role: str
    what: str  # the tensor's name, with * for layer numbers
    expression: str  # in config keys
    substituted: str  # the same expression with values
    value: int
    latex: str = ""  # the equation: expression = substituted = value

    def to_dict(self) -> dict[str, Any]:
        """Return the step in the JSON. Keys are added, never renamed."""
        return dict(vars(self))


@dataclass(frozen=True)
class Block:
    """A run of equal layers."""

    block: str  # its modules: transformer.h.0-11
    layers: int
    parameters: int  # of one


@dataclass(frozen=True)
class Section:
    """A part of the model that is added up for itself: one tensor, or a stack of equal layers."""

    part: str  # the tensor's module, or the modules of the layers: transformer.h.0-11
    layers: int  # how many there are; 1 outside of the layers
    repeats: str  # the same in config keys: n_layer
    steps: tuple[Step, ...]  # of one
    expression: str  # the sum of one, in config keys
    substituted: str  # the same expression with values
    parameters: int  # of one
    total: int  # of all
    latex: str  # the equation of one


@dataclass(frozen=True, repr=False)
class Formula(Displayed):
    """A model's unique parameters as an expression over its config keys.

    SymPy and Python can evaluate `expression`; `text` is for people. The values of `steps` sum to
    `value`.

    >>> import tallystick
    >>> answer = tallystick.formula("gpt2")
    >>> eval(answer.expression, dict(answer.symbols)) == answer.value == 124_439_808
    True
    """

    source: str
    expression: str
    symbols: dict[str, int]
    latex: str
    value: int
    steps: tuple[Step, ...]
    text: str
    notes: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick formula``. Keys are a contract: added, never renamed."""
        return {
            **vars(self),
            "symbols": dict(self.symbols),
            "steps": [step.to_dict() for step in self.steps],
            "blocks": [dict(vars(one)) for one in self.blocks],
            "sections": [{**vars(one), "steps": [step.to_dict() for step in one.steps]} for one in self.sections],
            "notes": list(self.notes),
        }

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"


def formula(ledger: Ledger) -> Formula:
    """Return a ledger's formula: in config keys if a config describes it, otherwise in numbers.

    Args:
        ledger: the model.
    """
    described = ledger.as_described
    notes = list(ledger.notes) if described is ledger else []
    if described.total != ledger.total:
        difference = ledger.total - described.total
        notes.append(
            f"the formula is the config's, {described.total:,}; {ledger.source} has {abs(difference):,}"
            f" {'more' if difference > 0 else 'fewer'}"
        )
    entries = [entry for entry in _rolled(described.parameters) if entry.size]
    steps = tuple(_step(entry, ledger.model.symbols) for entry in entries)
    groups: dict[tuple[str, Expression], int] = {}  # number of equal blocks per stack
    for (_, count, _), group in groupby((entry for entry in entries if entry.unique), key=_stack):
        block = list(group)
        alike = block[0].name.partition("{}")[0], _collected(block)
        groups[alike] = groups[alike] + count if alike in groups else count
    none: Expression = 0
    whole = reduce(plus, (_stacked(count, block) for (_, block), count in groups.items()), none)
    named = {key for entry in entries for size in (*_factors(entry), *entry.shape) for key in keys(expression_of(size))}
    used = {key: value for key, value in ledger.model.symbols.items() if key in named}
    return Formula(
        source=ledger.source,
        expression=write(whole),
        symbols=used,
        latex=write(whole, LATEX),
        value=sum(step.value for step in steps),
        steps=steps,
        text=write(whole, TEXT),
        notes=tuple(notes),
        blocks=tuple(Block(*run) for run in runs_of_layers(described.parameters)),
        sections=tuple(_sections(entries, ledger.model.symbols)),
    )


# -- one entry ------------------------------------------------------------------------------------


def _rolled(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield rolled-up entries as they are; roll up single entries by layer."""
    stacks: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        template = entry.name if entry.axes else template_of(entry.name)[0]
        written = tuple(map(expression_of, entry.shape))  # sizes of one value may have other names: d_ff = d_model
        stacks.setdefault((template, entry.shape, written, entry.axes, entry.role, entry.unique), []).append(entry)
    for (template, *_), stack in stacks.items():
        first = stack[0]
        if len(stack) == 1:
            yield first
        else:
            yield first._replace(name=template, axes=(Axis(0, len(stack)),))


def _stack(entry: Entry) -> tuple[int, int, Expression]:
    """Return an entry's stack: first layer, number of layers, and that number as an expression."""
    start, length = entry.axes[0] if entry.axes else Axis(-1, 1)
    return start, length, expression_of(length)


def _factors(entry: Entry) -> list[int]:
    """Return an entry's factors: number of layers, then each size; 0 for a tied tensor."""
    # A partly overlapping view adds a number that is not a product.
    sizes = list(entry.shape) if entry.unique == entry.size else [entry.unique]
    return [axis.length for axis in entry.axes] + sizes


def _product(factors: Iterable[int]) -> Expression:
    whole = math.prod(factors, start=Dim(1, 1))
    return _without_neutral(expression_of(whole))


def _without_neutral(expression: Expression) -> Expression:
    """Drop factors of 1 on the left, and summands of 0 on the right."""
    if isinstance(expression, tuple):
        symbol, left, right = expression[0], _without_neutral(expression[1]), _without_neutral(expression[2])
        if symbol == "*" and left == 1:
            return right
        return left if symbol in ("+", "-") and right == 0 else (symbol, left, right)
    return expression


def _step(entry: Entry, symbols: Mapping[str, int]) -> Step:
    expression = _product(_factors(entry))
    tied = f" (is {entry.storage.replace('{}', '*')})" if not entry.unique else ""
    return Step(
        role=entry.role,
        what=entry.name.replace("{}", "*") + tied,
        expression=write(expression),
        substituted=write(expression, NUMBERS, symbols),
        value=entry.unique * entry.copies,
        latex=_equation(expression, symbols, entry.unique * entry.copies),
    )


# -- sections -------------------------------------------------------------------------------------


def _sections(entries: Iterable[Entry], symbols: Mapping[str, int]) -> Iterator[Section]:
    """Yield each tensor outside of the layers' stacks, and each stack as one of its layers."""
    parts: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        root, numbered, _ = entry.name.partition("{}")
        place = (root, *_stack(entry)) if numbered else (entry.name.rpartition(".")[0] or entry.name, 0, 1, 1)
        parts.setdefault(place, []).append(entry)
    for (root, start, layers, repeats), block in parts.items():
        stacked = "{}" in block[0].name
        ones = [one._replace(axes=one.axes[1:], name=one.name.replace("{}", "*", 1)) for one in block]
        steps = tuple(_step(one, symbols) for one in ones)
        whole = collect(_product(_factors(one)) for one in ones if one.unique)
        parameters = sum(step.value for step in steps)
        last = f"-{int(start) + int(layers) - 1}" if layers > 1 else ""
        yield Section(
            part=f"{root}{int(start)}{last}" if stacked else root,
            layers=int(layers),
            repeats=write(repeats),
            steps=steps,
            expression=write(whole),
            substituted=write(whole, NUMBERS, symbols),
            parameters=parameters,
            total=parameters * int(layers),
            latex=_equation(whole, symbols, parameters),
        )


def _equation(expression: Expression, symbols: Mapping[str, int], value: int) -> str:
    """Return an expression, the same in numbers, and its value, in LaTeX."""
    sides = [write(expression, LATEX), write(expression, LATEX_NUMBERS, symbols), write(value, LATEX_NUMBERS)]
    return " = ".join(dict.fromkeys(sides))


# -- the sum --------------------------------------------------------------------------------------


def _stacked(count: int, block: Expression) -> Expression:
    """Multiply the parameters of one layer by the number of layers, such as layers - 3."""
    return times(collect([expression_of(count)]), block)


def _collected(entries: Iterable[Entry]) -> Expression:
    """Sum the tensors of one block."""
    return collect(_product(_factors(entry._replace(axes=entry.axes[1:]))) for entry in entries)
