"""Expand expressions into sums of products, and collect like terms.

A product is a coefficient and the powers of its factors: keys, roundings, and sums that divide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from tallystick.core.algebra.expressions import ROUNDINGS, Expression, atoms

Monomial: TypeAlias = frozenset[tuple[Expression, int]]  # each factor with its power, which is not 0
Polynomial: TypeAlias = dict[Monomial, Fraction]  # coefficients, none of which is 0

_ONE: Monomial = frozenset()


def expand(expression: Expression) -> Polynomial:
    """Return an expression as a sum of products.

    >>> expand(("*", ("+", "a", 1), ("-", "a", 1))) == {frozenset({("a", 2)}): 1, frozenset(): -1}
    True
    """
    if isinstance(expression, int):
        return {_ONE: Fraction(expression)} if expression else {}
    if isinstance(expression, str) or expression[0] in ROUNDINGS:
        return {frozenset({(expression, 1)}): Fraction(1)}
    symbol, left, right = expression[0], expand(expression[1]), expand(expression[2])
    if symbol == "*":
        return _product(left, right)
    if symbol == "/":
        return _product(left, _inverse(right, expression[2]))
    return _sum(left, right if symbol == "+" else _product(right, {_ONE: Fraction(-1)}))


def collect(expressions: Iterable[Expression]) -> Expression:
    """Add expressions: like terms collected, highest degree first.

    The factors of a term are in the order in which the first expression with it has them.

    >>> collect([("*", ("-", "a", 1), "b"), ("*", "b", "a")])
    ('-', ('*', ('*', 2, 'a'), 'b'), 'b')
    """
    return _collected(tuple(expressions))


@lru_cache(maxsize=256)  # a hybrid model has the same block dozens of times
def _collected(expressions: tuple[Expression, ...]) -> Expression:
    total: dict[Monomial, Fraction] = {}
    places: dict[Monomial, dict[Expression, int]] = {}  # of the factors, in the first expression with the monomial
    for expression in expressions:
        written = list(dict.fromkeys(atoms(expression)))
        for monomial, coefficient in expand(expression).items():
            total[monomial] = total.get(monomial, 0) + coefficient
            places.setdefault(monomial, {atom: place for place, atom in enumerate(written)})
    out: Expression = 0
    for monomial in sorted(filter(total.get, total), key=_degree, reverse=True):
        term = _term(abs(total[monomial]), monomial, places[monomial])
        out = plus(out, term) if total[monomial] > 0 else ("-", out, term)
    return out


def plus(left: Expression, right: Expression) -> Expression:
    """Return a sum of two, which is the other one if one is 0."""
    return right if left == 0 else left if right == 0 else ("+", left, right)


def times(left: Expression, right: Expression) -> Expression:
    """Return a product of two, which is the other one if one is 1."""
    return right if left == 1 else left if right == 1 else ("*", left, right)


def _degree(monomial: Monomial) -> int:
    return sum(power for _, power in monomial)


def _term(coefficient: Fraction, monomial: Monomial, places: Mapping[Expression, int]) -> Expression:
    """Return a product: coefficient, then factors in order of their places, then what divides."""
    out: Expression = coefficient.numerator
    if coefficient.denominator > 1:
        out = ("/", out, coefficient.denominator)
    factors = sorted(monomial, key=lambda factor: places.get(factor[0], len(places)))
    for base, power in factors:
        if power > 0:
            out = times(out, _raised(base, power))
    for base, power in factors:
        if power < 0:
            out = ("/", out, _raised(base, -power))
    return out


def _raised(base: Expression, power: int) -> Expression:
    return base if power == 1 else ("**", base, power)


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    total = {monomial: left.get(monomial, 0) + right.get(monomial, 0) for monomial in [*left, *right]}
    return {monomial: Fraction(coefficient) for monomial, coefficient in total.items() if coefficient}


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for one, other in product(left, right):
        powers = dict(one)
        for base, power in other:
            powers[base] = powers.get(base, 0) + power
        monomial = frozenset((base, power) for base, power in powers.items() if power)
        total[monomial] = total.get(monomial, Fraction(0)) + left[one] * right[other]
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _inverse(divisor: Polynomial, written: Expression) -> Polynomial:
    """Return 1 / divisor: the inverse of a product, or a sum as one factor with the power -1."""
    if len(divisor) != 1:
        return {frozenset({(written, -1)}): Fraction(1)}
    ((monomial, coefficient),) = divisor.items()
    return {frozenset((base, -power) for base, power in monomial): 1 / coefficient}
