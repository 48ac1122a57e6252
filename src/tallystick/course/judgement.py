"""Word the verdict on a count of a learner: right or wrong, where, and three hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trial:
    """One model with drawn sizes, the answer's count, and its error.

    `sizes` have the names that the answer gives them.

    >>> from tallystick.course import judge
    >>> trial = judge("single-head-attention", lambda d_model, d_head: 0).trials[0]
    >>> trial.off_by == -3 * trial.sizes["d_model"] * trial.sizes["d_head"]
    True
    """

    sizes: dict[str, Any]
    given: int
    off_by: int


@dataclass(frozen=True, repr=False)
class Judgement:
    """Whether an answer is right, with a sentence that says where it is wrong.

    `trials` go from the smallest model to the largest. They are empty if the answer could not be
    compared. `hints` go from the part of the model that is miscounted, through the shapes in it, to
    the missing term. `diagnosis` is the last hint if one mistake, or two, explain every error; else
    it is empty.

    >>> from tallystick.course import judge
    >>> answer = judge("bare-bones-lm", lambda vocab_size, d_model: 2 * vocab_size * d_model)
    >>> answer.right, answer.diagnosis
    (False, 'head.bias is left out: vocab_size too few')
    """

    right: bool
    sentence: str
    trials: tuple[Trial, ...] = ()
    hints: tuple[str, ...] = ()
    diagnosis: str = ""

    def __repr__(self) -> str:
        return f"{self.sentence}\nhint 1 of {len(self.hints)}: {self.hints[0]}" if self.hints else self.sentence


def sentence(trials: Sequence[Trial]) -> str:
    """Return whether the trials are right, or the smallest model at which they are not."""
    right = [trial for trial in trials if not trial.off_by]
    wrong = [trial for trial in trials if trial.off_by]
    if not wrong:
        return f"right at each of {len(trials)} sizes"
    first = wrong[0]
    far = f"{abs(first.off_by):,} too {'many' if first.off_by > 0 else 'few'}"
    where = f"{len(wrong)} of" if right else "each of"
    text = f"wrong at {where} {len(trials)} sizes: with {said(first.sizes)} it gives {first.given:,}, which is {far}"
    return f"{text}; right with {said(right[0].sizes)}" if right else text


def said(sizes: Mapping[str, Any]) -> str:
    """Return sizes as text: ``d_model = 4, n_heads = 2``."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())
