"""Terms of a total, followed through the lines that it refers to, with values and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Value

MOST_TERMS = 500  # per sum, all levels together
MOST_LEVELS = 40
MOST_FACTORS = 12
MOST_LABELS = 4
LEAST_RATIO = 16  # 12 × 2,359,296 inherits the label of 2,359,296; 768 × 3072 does not inherit any

_NONE = Fraction(0)


class Term(NamedTuple):
    """A term of a sum.

    `parts` are its own addends, or () if it is one product.
    """

    value: Fraction
    spread: Fraction = _NONE  # half the width of its rounding bounds
    factors: tuple[int, ...] = ()  # whole factors of its product; () if it has other factors
    labels: tuple[str, ...] = ()  # words before it, nearest first
    line: int = 0
    parts: tuple[Term, ...] = ()
    size: int = 1
    levels: int = 1
    rest: bool = False  # what rounding adds to the addends before it

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its factors but 1, in ascending order."""
        return tuple(sorted(factor for factor in self.factors if factor != 1))

    @property
    def leaves(self) -> tuple[Term, ...]:
        """Its addends one level down, or itself if it is one product."""
        return self.parts or (self,)


def term_of(
    expression: Expression,
    value: Callable[[Expression], Value],
    refers: Callable[[Number | Name], Term | None],
    *,
    asides: bool,
) -> Term:
    """Return the term of an expression.

    Args:
        expression: the expression, which must have a value.
        value: returns the value of any part of it.
        refers: returns the term of the earlier line behind a number or name, or None.
        asides: treat parentheses after a number as comments.

    Raises:
        Undefined: if a part has no value.
    """

    def term(node: Expression) -> Term:
        if not isinstance(node, Operation):
            return refers(node) or _leaf(value(node))
        first = factor(node, 0) if node.symbols[0] in "*/(" else term(node.parts[0])
        if node.symbols[0] in "+-":
            signs = [1, *(1 if symbol == "+" else -1 for symbol in node.symbols)]
            sizes = sizes_in(node)  # in 768 × 3072 + 3072 the bias is a size too
            others = [_leaf(value(part)) if sizes and part in sizes else term(part) for part in node.parts[1:]]
            return total(
                part if sign == 1 else times(part, _leaf(value(Number(Fraction(-1)))))
                for sign, part in zip(signs, [first, *others], strict=True)
            )
        if node.symbols[0] == "^":
            power = value(node.parts[1]).exact
            if 1 < power <= 4 and power.denominator == 1 and not first.parts:
                return first._replace(value=value(node).exact, factors=first.factors * int(power))
            return _leaf(value(node))
        for symbol, part in zip(node.symbols, node.parts[1:], strict=True):
            if symbol == "/":
                first = _scaled(first, 1 / value(part).exact)
            elif symbol == "(+":
                first = first if asides else total([first, term(part)])
            elif symbol == "*" or not asides:
                first = times(first, factor(node, node.parts.index(part)))
        return first

    def factor(node: Operation, place: int) -> Term:
        """Return the term of a factor.

        In 768 × 3072 both are sizes, even if an earlier line computed 3,072.
        """
        part = node.parts[place]
        if not isinstance(part, Number):
            return term(part)
        others = [value(other).exact for number, other in enumerate(node.parts) if number != place]
        return term(part) if part.value >= LEAST_RATIO * max(others) else _leaf(value(part))

    return term(expression)


def sizes_in(node: Operation) -> frozenset[Expression]:
    """Return the factors of the products that a sum adds."""
    products = (part for part in node.parts if isinstance(part, Operation) and part.symbols[0] == "*")
    return frozenset(factor for product in products for factor in product.parts)


def total(terms: Iterable[Term]) -> Term:
    """Return the sum of some terms."""
    parts = [leaf for term in terms for leaf in ((term,) if term.labels else term.leaves)]
    return _bounded(
        Term(
            sum((part.value for part in parts), _NONE),
            sum((part.spread for part in parts), _NONE),
            parts=tuple(part for part in parts if part.value),
        )
    )


def times(one: Term, other: Term) -> Term:
    """Return the product of two terms, expanded: (50257 + 1024) × 768 becomes two products."""
    if one.parts or other.parts:
        if one.size * other.size > MOST_TERMS:
            parts: tuple[Term, ...] = ()
        else:
            parts = tuple(times(left, right) for left in one.leaves for right in other.leaves)
    else:
        parts = ()
    labels = tuple(
        label
        for term, by in ((one, other), (other, one))
        if abs(term.value) >= LEAST_RATIO * abs(by.value)
        for label in term.labels
    )
    factors = one.factors + other.factors if one.factors and other.factors else ()
    return _bounded(
        Term(
            one.value * other.value,
            one.spread * abs(other.value) + other.spread * abs(one.value) + one.spread * other.spread,
            factors if len(factors) <= MOST_FACTORS else (),
            labels[:MOST_LABELS],
            one.line or other.line,
            parts,
            rest=one.rest or other.rest,
        )
    )


def labelled(term: Term, labels: Sequence[str], line: int) -> Term:
    """Return a term with more labels, and with the line if it has none.

    The new labels come after its own ones.
    """
    more = tuple(label for label in labels if label)
    if not more and term.line:
        return term  # its parts have their lines too
    return term._replace(
        labels=(term.labels + more)[:MOST_LABELS],
        line=term.line or line,
        parts=tuple(labelled(part, more, line) for part in term.parts),
    )


def _leaf(value: Value) -> Term:
    if not value.is_exact:
        return Term(value.exact, (value.high - value.low) / 2)
    whole = value.exact.denominator == 1 and value.exact.numerator >= 0
    return Term(value.exact, factors=(value.exact.numerator,) if whole else ())


def _scaled(term: Term, by: Fraction) -> Term:
    return term._replace(
        value=term.value * by,
        spread=term.spread * by,
        factors=(),
        parts=tuple(_scaled(part, by) for part in term.parts),
    )


def _bounded(term: Term) -> Term:
    size = 1 + sum(part.size for part in term.parts)
    levels = 1 + max((part.levels for part in term.parts), default=0)
    if size > MOST_TERMS or levels > MOST_LEVELS:
        return term._replace(size=1, levels=1, parts=())
    return term._replace(size=size, levels=levels)
