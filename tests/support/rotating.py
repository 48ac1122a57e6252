"""Draws that are others in each commit, of which a run needs few."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import seed

import measurements
from drawing import EXAMPLES, drawn


def drawn_by_commit(examples: int) -> Callable[[Any], Any]:
    """Draw so many examples: the same in every run of a commit, and others in the next one.

    For what needs no figure of tests/measured, which knows the draws that never change.
    """
    chosen = drawn(examples)
    if EXAMPLES is not None:
        return chosen
    return lambda test: seed(int(measurements.digest(measurements.seed()), 16))(chosen(test))


ALL = EXAMPLES is not None or measurements.MODE == "write"  # a search after a change; what is asked for is committed


def some_by_commit(cases: Sequence[Any], most: int) -> list[Any]:
    """So many of the cases, in their order, and others in other commits; all of them in a search
    after a change.
    """
    if ALL:
        return list(cases)
    taken = random.Random(f"{measurements.seed()} {[*cases]}").sample(range(len(cases)), min(most, len(cases)))
    return [cases[place] for place in sorted(taken)]


def taken_by_commit(case: str, share: int) -> bool:
    """Whether a commit takes a case, as one commit of so many does; each does in a search after a
    change.
    """
    return EXAMPLES is not None or int(measurements.digest(f"{measurements.seed()} {case}"), 16) % share == 0


def one_by_commit(cases: Sequence[str]) -> list[str]:
    """One of the cases, and others in other commits; all of them in a search after a change."""
    if ALL:
        return list(cases)
    return [random.Random(measurements.seed() + " ".join(cases)).choice(cases)]
