"""Drawn derivations with what must be said of them, whatever the layout."""

from __future__ import annotations

import random

import derivations
import tallystick
from derivations_changed import slipped

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
