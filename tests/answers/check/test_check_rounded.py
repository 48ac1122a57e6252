"""Right derivations drawn at random, with rounded numbers and one layer apart, are not accused."""

from __future__ import annotations

import random

import pytest

import tallystick
from rounded_derivations import LAYOUTS, NUMBERS, drawn, written

DRAWN = 10  # models of each layout


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_right_derivation_of_layers_is_not_accused(layout, number):
    for seed in range(DRAWN):
        model, config = drawn(random.Random(f"{layout} {number} {seed}"))
        text = written(model, layout, NUMBERS[number])
        for against in (None, config):
            wrong = [one.text for one in tallystick.check(text, against=against).equations if not one.correct]
            assert wrong == [], text
