"""Right derivations drawn at random, with rounded numbers and one layer apart, are not accused."""

from __future__ import annotations

import random

import pytest

import tallystick
from rounded_derivations import LAYOUTS, NUMBERS, drawn, written

DRAWN = 6  # models of each layout


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_right_derivation_of_layers_is_not_accused(layout, number):
    for seed in range(DRAWN):
        model, config = drawn(random.Random(f"{layout} {number} {seed}"))
        text = written(model, layout, NUMBERS[number])
        for against in (None, config):
            wrong = [one.text for one in tallystick.check(text, against=against).equations if not one.correct]
            assert wrong == [], text


@pytest.mark.parametrize("number", ["exact", "rounded"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_total_of_the_layers_and_the_rest_is_found(layout, number):
    for seed in range(DRAWN):
        model, config = drawn(random.Random(f"total {layout} {number} {seed}"))
        text = written(model, layout, NUMBERS[number])
        for against in (None, config):
            claimed = tallystick.check(text, against=against).total_claimed
            assert claimed is not None, text
            assert NUMBERS[number](round(claimed)) == NUMBERS[number](model.total), text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_digit_wrong_in_an_exact_total_is_found(layout):
    for seed in range(DRAWN):
        chance = random.Random(f"wrong {layout} {seed}")
        model, config = drawn(chance)
        text = written(model, layout, NUMBERS["exact"])
        total, place = f"{model.total:,}", chance.choice((0, -1, -2))
        digit = str((int(total[place]) + chance.randint(1, 8)) % 10 or 1)
        wrong = f"{total[:place]}{digit}{total[place:][1:]}"
        if wrong == total:
            continue
        before, _, behind = text.rpartition(total)
        for against in (config,) if layout == "prose" else (None, config):  # a sentence may count other parts too
            equations = tallystick.check(f"{before}{wrong}{behind}", against=against).equations
            assert any(not one.correct for one in equations), f"{before}{wrong}{behind}"
