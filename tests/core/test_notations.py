"""Expressions as text: Python must read what is written for it, and LaTeX is SymPy's."""

import math
import re
from fractions import Fraction

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from drawing import drawn
from tallystick.core.algebra.expressions import evaluate, keys
from tallystick.core.algebra.notations import LATEX, NUMBERS, TEXT, write

VALUES = {"a": 7, "b": 60, "n_c": 500}
EXPRESSIONS = st.recursive(
    st.sampled_from([1, 2, 96, *VALUES]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), inner, inner),
        st.tuples(st.sampled_from(["/", "floor", "ceil"]), inner, st.sampled_from([2, "a", ("*", 2, "b"), ("+", "a", 1)])),
        st.tuples(st.just("**"), inner, st.just(2)),
    ),
    max_leaves=8,
)  # fmt: skip

# What people read, as Python reads it.
PLAIN = str.maketrans({"·": "*", "×": "*", "²": "**2", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", ",": ""})


def python(text, values):
    exact = re.sub(r"\b\d+\b", r"whole(\g<0>)", text)  # a quotient of Python's integers would be a float
    names = {"whole": Fraction, "ceil": math.ceil, "floor": math.floor, "max": max, "min": min}
    return eval(exact, names, {key: Fraction(value) for key, value in values.items()})


@given(expression=EXPRESSIONS)
@drawn(200)
def test_python_reads_what_is_written_for_it(expression):
    assert python(write(expression), VALUES) == evaluate(expression, VALUES)


@given(expression=EXPRESSIONS.filter(lambda one: "max" not in str(one) and "min" not in str(one)))
@drawn(200)
def test_text_for_people_has_the_parentheses_that_it_needs(expression):
    truth = evaluate(expression, VALUES)
    assert python(write(expression, TEXT).translate(PLAIN), VALUES) == truth
    assert python(write(expression, NUMBERS, VALUES).translate(PLAIN), {}) == truth


A, B, N = sympy.symbols("a b n_c", positive=True)


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        ("n_c", N),
        (("*", 12, ("**", "n_c", 2)), 12 * N**2),
        (("*", ("*", 3, "a"), ("**", "b", 3)), 3 * A * B**3),
        (("-", ("*", 2, "n_c"), 1), 2 * N - 1),
        (("*", "a", ("+", "b", "n_c")), A * (B + N)),
        (("floor", ("*", 8, "a"), 3), sympy.floor(8 * A / 3)),
        (("ceil", ("+", "a", "b"), "n_c"), sympy.ceiling(sympy.UnevaluatedExpr((A + B) / N))),
        (("*", 3, ("ceil", ("floor", ("*", 2, "a"), 3), "b")), 3 * sympy.ceiling(sympy.floor(2 * A / 3) / B)),
        (("max", "a", ("*", 2, "b")), sympy.Max(A, 2 * B)),
        (("**", ("+", "a", "b"), 2), (A + B) ** 2),
    ],
)
def test_latex_is_that_of_sympy(expression, truth):
    names = {A: r"\mathrm{a}", B: r"\mathrm{b}", N: r"\mathrm{n\_c}"}
    assert write(expression, LATEX) == sympy.latex(truth, symbol_names=names, mul_symbol=r" \cdot ")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (("-", "a", ("-", "b", "c")), "a - (b - c)"),
        (("+", "a", ("-", "b", "c")), "a + b - c"),
        (("/", "a", ("*", "b", "c")), "a/(b*c)"),
        (("*", "a", ("*", "b", "c")), "a*b*c"),
        (("-", 0, ("*", 2, "a")), "-2*a"),
        (("+", "b", ("-", 0, ("*", 2, "a"))), "b - 2*a"),
        (("+", "a", 0), "a + 0"),
        (("+", ("ceil", "a", 2), ("ceil", "b", 2)), "-(-a//2) + (-(-b//2))"),
    ],
)
def test_parentheses_are_the_fewest(expression, text):
    assert write(expression) == text


def test_a_long_sum_is_written_without_recursion():
    """A module whose 5,000 layers are of 5,000 sizes has as many terms."""
    total = "a"
    for number in range(5000):
        total = ("+", total, number)
    assert write(total).count("+") == 5000


def test_the_keys_of_an_expression_are_written_upright():
    assert sorted(set(keys(("floor", "n_embd", ("*", "n_head", 2))))) == ["n_embd", "n_head"]
    assert write("n_embd", LATEX) == r"\mathrm{n\_embd}"
