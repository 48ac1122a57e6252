"""Derive the closed form of a count, and each product in it, from the ledger's shapes.

No architecture is known here: the sizes carry the config keys that they came from (`dims`), and
they are expanded and collected as `polynomials`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import groupby
from typing import Any

from tallystick.core.dims import Dim, expression_of
from tallystick.core.entries import Axis, Entry
from tallystick.core.expressions import Expression, keys
from tallystick.core.ledger import Ledger
from tallystick.core.notations import LATEX, NUMBERS, TEXT, write
from tallystick.core.polynomials import collect, plus, times
from tallystick.core.tensor_names import template_of


@dataclass(frozen=True)
class Step:
    """One product of the sum: one tensor, or one tensor per layer."""

    role: str
    what: str  # the tensor's name, with * for layer numbers
    expression: str  # in config keys
    substituted: str  # the same expression with values
    value: int


@dataclass(frozen=True)
class Formula:
    """A model's unique parameters as an expression over its config keys.

    SymPy and Python can evaluate `expression`; `text` is for people. The values of `steps` sum to
    `value`.
    """

    source: str
    expression: str
    symbols: dict[str, int]
    latex: str
    value: int
    steps: tuple[Step, ...]
    text: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick formula``. Keys are a contract: added, never renamed."""
        return {**asdict(self), "steps": [asdict(step) for step in self.steps], "notes": list(self.notes)}

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
    )


# -- one entry ------------------------------------------------------------------------------------


def _rolled(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield rolled-up entries as they are; roll up single entries by layer."""
    stacks: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        template = entry.name if entry.axes else template_of(entry.name)[0]
        stacks.setdefault((template, entry.shape, entry.axes, entry.role, entry.unique), []).append(entry)
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
    )


# -- the sum --------------------------------------------------------------------------------------


def _stacked(count: int, block: Expression) -> Expression:
    """Multiply the parameters of one layer by the number of layers, such as layers - 3."""
    return times(collect([expression_of(count)]), block)


def _collected(entries: Iterable[Entry]) -> Expression:
    """Sum the tensors of one block."""
    return collect(_product(_factors(entry._replace(axes=entry.axes[1:]))) for entry in entries)
