"""What is said of a derivation does not depend on how it is written: its layout, order, notation, names, language.

Of each drawn text, right or with one slip that is carried on, and of the same text written otherwise, the wrong
equations, the total, its truth and the corrections are the same.
"""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import derivations
import tallystick
from derivations_changed import TEXTS, below_its_config, renamed, reordered, slipped

DRAWN = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
STYLES = sorted(derivations.STYLES)


class Written:
    """A derivation and the ways in which it is written."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        heads, layers, vocabulary = chance.randint(8, 24), chance.randint(2, 40), chance.randint(500, 60_000)
        if chance.random() < 0.5:
            positions = chance.randint(16, 4096)
            self.config = {"vocab_size": vocabulary, "n_positions": positions, "n_embd": 64 * heads, "n_layer": layers}
            self.lines = derivations.gpt2(self.config)
            self.config |= {"model_type": "gpt2", "n_head": heads}
        else:
            self.config = {
                "vocab_size": vocabulary, "hidden_size": 64 * heads, "intermediate_size": chance.randint(500, 6000),
                "num_hidden_layers": layers, "num_attention_heads": heads,
                "num_key_value_heads": chance.choice([part for part in range(1, heads + 1) if heads % part == 0]),
            }  # fmt: skip
            self.lines = derivations.llama(self.config)
            self.config |= {"model_type": "llama"}
        self.true = self.lines[-1].value
        self.right = chance.random() < 0.4
        if not self.right:
            self.lines = slipped(self.lines, chance)
        self.style = chance.choice(STYLES)
        self.times = chance.choice(derivations.TIMES)
        self.thousands = chance.choice(sorted(derivations.THOUSANDS))

    def text(self, lines=None, style=None, times=None, thousands=None, language="English"):
        pieces = derivations.written(lines or self.lines, style or self.style, times or self.times)
        return derivations.text_of(derivations.translated(pieces, language), thousands or self.thousands)

    def said(self, text):
        """What is said of a text, whatever the words: and it is right about this derivation."""
        answer = tallystick.check(text, against=self.config)
        wrong = {(equation.right, equation.should_be) for equation in answer.equations if not equation.correct}
        assert len(wrong) == (not self.right), (text, wrong)
        assert answer.total_claimed == self.lines[-1].value, text
        assert answer.total_true == self.true
        corrections = sum(omission.parameters for omission in answer.omissions)
        sums = answer.total_claimed + answer.arithmetic + answer.rounding + answer.unexplained + corrections
        assert sums == answer.total_true, text
        return wrong, answer.total_claimed, answer.correct, corrections, answer.arithmetic, answer.unexplained


SEEDS = st.integers(0, 10**9)


@DRAWN
@given(seed=SEEDS)
def test_another_layout(seed):
    one = Written(seed)
    assert one.said(one.text(style=one.chance.choice(STYLES))) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_other_signs_and_thousands(seed):
    one = Written(seed)
    other = one.text(
        times=one.chance.choice(derivations.TIMES), thousands=one.chance.choice(sorted(derivations.THOUSANDS))
    )
    assert one.said(other) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_another_language(seed):
    one = Written(seed)
    other = one.text(language=one.chance.choice(sorted(derivations.LANGUAGES)))
    assert one.said(other) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_other_names(seed):
    one = Written(seed)
    assert one.said(one.text(renamed(one.lines, one.chance))) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_another_order_of_parts(seed):
    one = Written(seed)
    assert one.said(one.text(reordered(one.lines, one.chance))) == one.said(one.text())


@pytest.mark.parametrize("how", sorted(TEXTS))
@DRAWN
@given(seed=SEEDS)
def test_the_same_lines_written_otherwise(how, seed):
    one = Written(seed)
    if how == "copied thrice":
        one.style = one.chance.choice(("display", "sections"))
    text = one.text()
    assert one.said(TEXTS[how](text, one.style, one.chance)) == one.said(text)


@DRAWN
@given(seed=SEEDS)
def test_a_config_on_top(seed):
    one = Written(seed)
    if (
        one.style == "columns"
    ):  # its wrong total stands alone, and the config's numbers would be added to what it should be
        one.style = "table"
    text = one.text()
    assert one.said(below_its_config(text, one.config, one.chance)) == one.said(text)


@DRAWN
@given(seed=SEEDS)
def test_several_changes_at_once(seed):
    one = Written(seed)
    lines = renamed(reordered(one.lines, one.chance), one.chance)
    text = one.text(lines, style=one.chance.choice(STYLES), times=one.chance.choice(derivations.TIMES))
    for how in ("below a heading", "trailing blanks", "from Windows"):
        text = TEXTS[how](text, one.style, one.chance)
    assert one.said(text) == one.said(one.text())
