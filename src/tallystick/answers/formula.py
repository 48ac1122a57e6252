"""Derive the closed form of a count, and each product in it, from the ledger's shapes.

No architecture is known here: the sizes carry the config keys that they came from (`dims`), and
SymPy expands and collects them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, NamedTuple

import sympy

from tallystick.core.dims import ROUNDINGS, Dim, Expression, atoms, expression_of, keys, write
from tallystick.core.display import Displayed
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of

_OPERATORS: dict[str, Callable[[sympy.Expr, sympy.Expr], sympy.Expr]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "floor": lambda left, right: sympy.floor(left / right),
    "ceil": lambda left, right: sympy.ceiling(left / right),
    "max": sympy.Max,
    "min": sympy.Min,
}
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Step:
    """One product of the sum: one tensor, or one tensor per layer."""

    role: str
    what: str  # the tensor's name, with * for layer numbers
    expression: str  # in config keys
    substituted: str  # the same expression with values
    value: int


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
    groups: dict[tuple[str, tuple[_Term, ...]], int] = {}  # number of equal blocks per stack
    for (_, count, _), group in groupby((entry for entry in entries if entry.unique), key=_stack):
        block = list(group)
        alike = block[0].name.partition("{}")[0], tuple(_collected(block))
        groups[alike] = groups[alike] + count if alike in groups else count
    terms = [term for (_, inner), count in groups.items() for term in _times(count, inner)]
    named = {key for entry in entries for expression in _written(entry) for key in keys(expression)}
    used = {key: value for key, value in ledger.model.symbols.items() if key in named}
    code, text, latex = _added(terms)
    return Formula(
        source=ledger.source,
        expression=code,
        symbols=used,
        latex=latex,
        value=sum(step.value for step in steps),
        steps=steps,
        text=text,
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
    return _without_ones(expression_of(whole))


def _without_ones(expression: Expression) -> Expression:
    if isinstance(expression, tuple):
        symbol, left, right = expression[0], _without_ones(expression[1]), _without_ones(expression[2])
        return right if symbol == "*" and left == 1 else (symbol, left, right)
    return expression


def _step(entry: Entry, symbols: Mapping[str, int]) -> Step:
    expression = _product(_factors(entry))
    tied = f" (is {entry.storage.replace('{}', '*')})" if not entry.unique else ""
    return Step(
        role=entry.role,
        what=entry.name.replace("{}", "*") + tied,
        expression=write(expression),
        substituted=write(expression, times=" × ", values=symbols, thousands=","),
        value=entry.unique * entry.copies,
    )


def _written(entry: Entry) -> list[Expression]:
    """Return the expressions of an entry's factors, and always those of its shape."""
    return [_without_ones(expression_of(factor)) for factor in (*_factors(entry), *entry.shape)]


def _atoms(entry: Entry) -> list[Expression]:
    """Return the config keys and roundings of an entry's product, in written order."""
    return [atom for expression in _written(entry) for atom in atoms(expression)]


# -- the sum --------------------------------------------------------------------------------------


class _Term(NamedTuple):
    """A summand of the closed form in its three spellings."""

    code: str
    text: str
    latex: str


def _added(terms: Sequence[_Term]) -> _Term:
    """Add terms in all three spellings, with a minus sign for negative terms."""
    if not terms:
        return _Term("0", "0", "0")
    return _Term(*(" + ".join(spellings).replace("+ -", "- ") for spellings in zip(*terms, strict=True)))


def _times(count: int, inner: Sequence[_Term]) -> Sequence[_Term]:
    """Multiply the terms of one layer by the number of layers."""
    if count == 1 and not isinstance(count, Dim):
        return inner
    expression = _one_constant(expression_of(count))
    code, text, latex = _added(inner)
    if len(inner) > 1:
        code, text, latex = f"({code})", f"({text})", rf"\left({latex}\right)"
    product = ("*", expression, "@")  # @ is a placeholder, so that `write` puts parentheses around the count
    return [
        _Term(
            write(product).replace("@", code),
            write(product, times="·").replace("@", text),
            _latex(_to_sympy(expression, whole=True), parentheses=isinstance(expression, tuple)) + rf" \cdot {latex}",
        )
    ]


def _one_constant(expression: Expression) -> Expression:
    """Simplify a count with a single key to that key and one constant, such as layers - 3."""
    constant, rest = sympy.expand(_to_sympy(expression, whole=True)).as_coeff_Add()
    if not rest.is_Symbol or not constant:
        return expression
    return ("-", str(rest), -int(constant)) if constant < 0 else ("+", str(rest), int(constant))


def _collected(entries: list[Entry]) -> list[_Term]:
    """Sum the tensors of one block: like terms collected, highest degree first."""
    coefficients: dict[sympy.Expr, sympy.Expr] = {}
    order: dict[sympy.Expr, list[Expression]] = {}
    for entry in entries:
        inner = entry._replace(axes=entry.axes[1:])
        for summand in sympy.Add.make_args(sympy.expand(_to_sympy(_product(_factors(inner))))):
            coefficient, monomial = summand.as_coeff_Mul()
            coefficients[monomial] = coefficients.get(monomial, sympy.Integer(0)) + coefficient
            order.setdefault(monomial, _atoms(inner))
    degrees = {monomial: sum(power for _, power in _powers(monomial)) for monomial in coefficients}
    return [
        _spelled(coefficients[monomial] * monomial, order[monomial])
        for monomial in sorted(coefficients, key=lambda m: -degrees[m])
        if coefficients[monomial] != 0
    ]


def _powers(monomial: sympy.Expr) -> list[tuple[sympy.Expr, int]]:
    return [(base, int(power)) for base, power in monomial.as_powers_dict().items() if base != 1]


def _spelled(term: sympy.Expr, order: list[Expression]) -> _Term:
    """Spell one product, with its factors in the order of the tensor's own shape."""
    coefficient, monomial = term.as_coeff_Mul()
    places = {_symbol(atom): (position, atom) for position, atom in reversed(list(enumerate(order)))}
    powers = sorted(_powers(monomial), key=lambda pair: (pair[1] < 0, places[pair[0]][0]))
    parts = [str(coefficient)] if coefficient != 1 or not powers or powers[0][1] < 0 else []
    code, text, latex = "*".join(parts), "·".join(parts), r" \cdot ".join(parts)
    for base, power in powers:
        size, atom = abs(power), places[base][1]
        between = ("/", "/", " / ") if power < 0 else ("*", "·", r" \cdot ") if code else ("", "", "")
        code += f"{between[0]}{base}" + (f"**{size}" if size > 1 else "")
        text += f"{between[1]}{write(atom, times='·')}" + (str(size).translate(_SUPERSCRIPTS) if size > 1 else "")
        latex += f"{between[2]}{_latex(_to_sympy(atom, whole=True))}" + (f"^{{{size}}}" if size > 1 else "")
    return _Term(code, text, latex)


def _symbol(atom: Expression) -> sympy.Symbol:
    """Return the SymPy symbol for a key or a rounding, named by its Python expression."""
    name = f"({write(atom)})" if isinstance(atom, tuple) and atom[0] in ("floor", "ceil") else write(atom)
    return sympy.Symbol(name, integer=True, positive=True)


def _latex(expression: sympy.Expr, *, parentheses: bool = False) -> str:
    """Return LaTeX with upright config keys: SymPy would set n_embd as n with an index."""
    names = {symbol: rf"\mathrm{{{str(symbol).replace('_', chr(92) + '_')}}}" for symbol in expression.free_symbols}
    latex: str = sympy.latex(expression, symbol_names=names)
    return rf"\left({latex}\right)" if parentheses else latex


def _to_sympy(expression: Expression, *, whole: bool = False) -> sympy.Expr:
    """Convert an expression to SymPy: each rounding is one symbol, or floor/ceil with `whole`."""
    if isinstance(expression, int):
        return sympy.Integer(expression)
    if isinstance(expression, str) or (expression[0] in ROUNDINGS and not whole):
        return _symbol(expression)
    left, right = (_to_sympy(part, whole=whole) for part in expression[1:])
    return _OPERATORS[expression[0]](left, right)
