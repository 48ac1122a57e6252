"""The corrections of a total lead to the model's, to the last parameter, whatever a text leaves
out, repeats or gets wrong.
"""

import random
import re
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import derivations
import tallystick
from chats import NAMES, chat
from written_derivations import Written

DRAWN = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
NUMBER = re.compile(r"\d[\d,]{3,}\d")


def adds_up(answer):
    """Exactly: fractions, where a sum of rounded numbers is none."""
    parts = [answer.total_claimed, answer.arithmetic, answer.rounding, answer.unexplained]
    parts += [omission.parameters for omission in answer.omissions]
    return sum(map(Fraction, parts)) == answer.total_true


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_lines_left_out_and_repeated(seed):
    one = Written(seed)
    lines = [line for line in one.lines[:-1] if one.chance.random() < 0.8]
    lines += [one.chance.choice(one.lines[:-1]) for _ in range(one.chance.randrange(3))]
    style = one.chance.choice(sorted({*derivations.STYLES} - {"labelled sum", "sections"}))  # these name what they add
    answer = tallystick.check(one.text([*lines, one.lines[-1]], style), against=one.config)
    assert answer.total_claimed is None or adds_up(answer), answer


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_a_total_of_some_of_the_lines(seed):
    one = Written(seed)
    *lines, total = one.lines
    products = [product for product in total.products if one.chance.random() < 0.7] or total.products
    products += one.chance.sample(total.products, one.chance.randrange(2))
    answer = tallystick.check(one.text([*lines, total._replace(products=products)]), against=one.config)
    if answer.total_claimed is None:
        assert one.style == "equations"  # "35,949,696 = 35,949,696", and no word that it is the total
    else:
        assert adds_up(answer), answer


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_numbers_changed(seed):
    one = Written(seed)
    pieces = derivations.written(one.lines, one.style, one.times)
    for _ in range(one.chance.randint(1, 4)):
        pieces, _ = derivations.spoiled(pieces, one.chance)
    answer = tallystick.check(derivations.text_of(pieces, one.thousands), against=one.config)
    assert answer.total_claimed is None or adds_up(answer), answer


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_numbers_rounded(seed):
    one = Written(seed)

    def rounded(match: re.Match[str]) -> str:
        value = int(match[0].replace(",", ""))
        if value < 10_000 or one.chance.random() < 0.4:
            return match[0]
        return f"{value / 10**6:.{one.chance.randint(1, 3)}f}M"

    text = NUMBER.sub(rounded, one.text(style="bullets", thousands="commas"))
    answer = tallystick.check(text, against=one.config)
    assert answer.total_claimed is None or adds_up(answer), (text, answer)


@pytest.mark.parametrize("described", [True, False], ids=["by its dictionary", "against a preset"])
@pytest.mark.parametrize("name", NAMES)
def test_a_chat_with_a_number_changed_or_a_formula_left_out(name, described):
    against = None if described else NAMES[name]
    text, chance = chat(name), random.Random(1)
    formulas = [*re.finditer(r"\\\[\n(.*)\n\\\]\n", text)]
    assert len(formulas) > 8
    for formula in chance.sample(formulas[:-1], 4):
        answer = tallystick.check(text[: formula.start()] + text[formula.end() :], against=against)
        assert answer.total_claimed is not None
        assert adds_up(answer), formula[1]
    for number in chance.sample([*re.finditer(r"\d[\d,]{4,}\d", text)], 4):
        wrong = f"{int(number[0].replace(',', '')) + 960:,}"
        answer = tallystick.check(text[: number.start()] + wrong + text[number.end() :], against=against)
        assert answer.total_claimed is not None
        assert adds_up(answer), number[0]
