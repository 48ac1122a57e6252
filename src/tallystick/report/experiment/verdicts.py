"""Compare an experiment with what the lecture and the papers claim, claim by claim."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.training.experiment.results import Comparison, Experiment, Mean

PRESS_WOLF = "[Press and Wolf 2017](https://arxiv.org/abs/1608.05859)"


def signed(gap: Mean) -> str:
    """Return a difference with its interval: ``+0.1203 ± 0.0310``."""
    return f"{gap.value:+.4f}{f' ± {gap.half:.4f}' if isfinite(gap.half) else ''}"


def with_half(mean: Mean, places: int = 4) -> str:
    """Return a mean with its interval: ``3.8984 ± 0.0407``."""
    return f"{mean.value:.{places}f}{f' ± {mean.half:.{places}f}' if isfinite(mean.half) else ''}"


def verdict(gap: Mean) -> str:
    """Return which is better, where the interval leaves out 0."""
    if not gap.clear:
        return "no clear difference"
    return "tied better" if gap.value > 0 else "tied worse"


def claims(answer: Experiment) -> list[str]:
    """Return each claim with what these runs show of it, as paragraphs.

    Args:
        answer: the experiment's results.
    """
    from tallystick.training.experiment.results import Mean

    compared = answer.comparisons
    equal = [one.variants[1].beyond(one.variants[0]) for one in compared]
    sized = [one.variants[2].beyond(one.variants[0]) for one in compared]
    return [
        "**Tying trains slightly better in equal steps** (the lecture, after Press and Wolf)."
        f" In equal steps and FLOPs {_sides(compared, equal)} In equal parameters {_sides(compared, sized)} Press and Wolf trained LSTMs on"
        " words, for many passes over one text, where fewer parameters overfit less. Here no run is long enough for that.",
        _shared(compared),
        f"**The tied matrix is like the untied head, and less like the untied embedding** ({PRESS_WOLF}, section 4)."
        + " "
        + _more(
            compared,
            [
                Mean.of(
                    [
                        head - bottom
                        for head, bottom in zip(
                            one.agreements["tied matrix, untied head"],
                            one.agreements["tied matrix, untied embedding"],
                            strict=True,
                        )
                    ]
                )
                for one in compared
            ],
        ),
        "**Similar tokens are near each other at both ends** (the lecture). " + _both(compared),
        "**Gradients of both uses add up** (the lecture). " + _added(compared),
    ]


def _sides(compared: Sequence[Comparison], gaps: Sequence[Mean]) -> str:
    sides: dict[str, list[str]] = {}
    for one, gap in zip(compared, gaps, strict=True):
        kind = verdict(gap) if isfinite(gap.half) else "one seed, no interval"
        sides.setdefault(kind, []).append(f"{one.share:.0%} ({signed(gap)})")
    words = {
        "tied better": "the tied decoder ends better",
        "tied worse": "the tied decoder ends worse",
        "no clear difference": "there is no clear difference",
        "one seed, no interval": "one seed shows no interval",
    }
    return "; ".join(f"{words[kind]} with the embedding at {', '.join(where)}" for kind, where in sides.items()) + "."


def _shared(compared: Sequence[Comparison]) -> str:
    """Say what a comparison at one setting for all would have shown, by the search's own seed."""
    base = compared[0].variants[0].trials[0]
    parts = []
    for one in compared:
        tied, untied = ([trial.loss for trial in variant.trials] for variant in one.variants[:2])
        parts.append(f"{untied[0] - tied[0]:+.3f} and {min(untied) - min(tied):+.3f} at {one.share:.0%}")
    return (
        f"**One setting for all decides the result.** Untied less tied, at rate {base.learning_rate:g} and deviation"
        f" {base.init_std:g} for both, and each at its best: {'; '.join(parts)} (one seed, the search's)."
    )


def _more(compared: Sequence[Comparison], gaps: Sequence[Mean]) -> str:
    parts = []
    for one, gap in zip(compared, gaps, strict=True):
        word = "shows no clear difference" if not gap.clear else "agrees" if gap.value > 0 else "disagrees"
        head, bottom = (fmean(one.agreements[f"tied matrix, untied {which}"]) for which in ("head", "embedding"))
        parts.append(f"{one.share:.0%} {word} ({head:.2f} of the neighbours in common against {bottom:.2f})")
    return f"The run with the embedding at {'; at '.join(parts)}."


def _both(compared: Sequence[Comparison]) -> str:
    parts = []
    for one in compared:
        if one.near:
            low, high = (_against_chance(one.near[f"untied {which}"], one.chance) for which in ("embedding", "head"))
            parts.append(
                f"At {one.share:.0%}, of the pairs that differ in case or space alone {low} are near in the untied"
                f" embedding, and {high} in the untied head."
            )
        shared = fmean(one.agreements["untied embedding, untied head"])
        again = one.agreements.get("untied head, from two seeds")
        other = f"; two heads from two seeds share {fmean(again):.0%}" if again else ""
        parts.append(
            f"{'Its' if one.near else f'At {one.share:.0%}, the'} embedding and head share {shared:.0%} of the"
            f" nearest tokens{other}."
        )
    return " ".join(parts)


def _against_chance(shares: Sequence[float], chance: float) -> str:
    from tallystick.training.experiment.results import Mean

    gap = Mean.of([share - chance for share in shares])
    side = ("above" if gap.value > 0 else "below") if gap.clear else "not clearly apart from"
    return f"{fmean(shares):.0%} ({side} chance, {chance:.0%})"


def _added(compared: Sequence[Comparison]) -> str:
    parts = []
    for one in compared:
        tied = one.variants[0]
        ratio = tied.mean("head_gradient").value / tied.mean("embedding_gradient").value
        parts.append(
            f"At {one.share:.0%} the gradient through the logits is {ratio:.1f} times the one through the lookup, which"
            f" reaches {tied.mean('rows').value:.0%} of the rows."
        )
    return " ".join(parts)
