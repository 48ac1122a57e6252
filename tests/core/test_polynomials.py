"""Expanding and collecting, against SymPy."""

from fractions import Fraction

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from rotating import drawn_by_commit
from tallystick.core.algebra.polynomials import collect, expand

KEYS = ("a", "b", "n_c")
OPERATORS = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "**": lambda left, right: left**right,
    "floor": sympy.Function("rounded"),
}

FACTORS = st.sampled_from([*KEYS, 1, 2, 3, ("floor", "a", 3)])
PRODUCTS = st.recursive(
    FACTORS, lambda inner: st.builds(lambda s, a, b: (s, a, b), st.sampled_from("*/"), inner, inner)
)
EXPRESSIONS = st.recursive(
    PRODUCTS, lambda inner: st.builds(lambda s, a, b: (s, a, b), st.sampled_from("+-*"), inner, inner), max_leaves=8
)


def as_sympy(expression):
    if isinstance(expression, tuple):
        symbol, left, right = expression
        return OPERATORS[symbol](as_sympy(left), as_sympy(right))
    return sympy.Symbol(expression, positive=True) if isinstance(expression, str) else sympy.Integer(expression)


def terms_of(polynomial):
    """What SymPy holds: each product of powers with its coefficient."""
    return {
        sympy.Mul(*(as_sympy(base) ** power for base, power in monomial)): sympy.Rational(coefficient)
        for monomial, coefficient in polynomial.items()
    }


@given(expression=EXPRESSIONS)
@drawn_by_commit(70)
def test_expanding_gives_the_terms_of_sympy(expression):
    truth = sympy.expand(as_sympy(expression)).as_coefficients_dict()
    assert terms_of(expand(expression)) == {term: value for term, value in truth.items() if value}


@given(expressions=st.lists(EXPRESSIONS, max_size=4))
@drawn_by_commit(35)
def test_collecting_adds_up_and_leaves_no_like_terms(expressions):
    collected = as_sympy(collect(expressions))
    truth = sympy.expand(sum(map(as_sympy, expressions)))
    assert sympy.expand(collected) == truth
    assert len(sympy.Add.make_args(collected)) == len(sympy.Add.make_args(truth))


@pytest.mark.parametrize(
    ("expressions", "collected"),
    [
        ([], 0),
        ([("-", "a", "a")], 0),
        ([("+", 3, ("-", "b", "a"))], ("+", ("-", "b", "a"), 3)),  # the highest degree first, then as written
        ([("-", "a", "b")], ("-", "a", "b")),
        ([("*", "d", "h"), ("*", "h", "d")], ("*", ("*", 2, "d"), "h")),
        ([("*", ("/", "d", "h"), "h")], "d"),
        ([("*", ("/", 2, "h"), ("*", "d", "d"))], ("/", ("*", 2, ("**", "d", 2)), "h")),
        ([("/", "d", 2), "d"], ("*", ("/", 3, 2), "d")),
        ([("/", "d", ("+", "h", 1))], ("/", "d", ("+", "h", 1))),
        ([("-", 1, "a")], ("+", ("-", 0, "a"), 1)),
        ([("*", ("max", "a", "b"), ("max", "a", "b"))], ("**", ("max", "a", "b"), 2)),
    ],
)
def test_terms_are_in_written_order(expressions, collected):
    assert collect(expressions) == collected


def test_coefficients_are_exact():
    third = Fraction(1, 3)
    assert expand(("/", "a", 3)) == {frozenset({("a", 1)}): third}
    assert expand(("-", ("*", 3, ("/", "a", 3)), "a")) == {}
