"""Draws that are others in each commit, of which a run needs few."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import seed

import measurements
from drawing import EXAMPLES, drawn
from repository import ROOT


def drawn_by_commit(examples: int) -> Callable[[Any], Any]:
    """Draw this number of examples: the same in every run of a commit, and others in the next one.

    For what needs no figure of tests/measured, which knows the draws that never change.
    """
    chosen = drawn(examples)
    if EXAMPLES is not None:
        return chosen
    return lambda test: seed(int(measurements.digest(measurements.seed()), 16))(chosen(test))


# What the count of a config goes through, and what draws configs.
MODELS = (
    "src/tallystick/architectures/", "src/tallystick/core/", "src/tallystick/sources/configs/", "tests/measured/",
    "tests/support/drawing.py", "tests/support/families", "tests/support/native.py", "tests/support/reference.py",
)  # fmt: skip
ALL = EXAMPLES is not None or measurements.MODE == "write"  # a search after a change; what is asked for is committed


FEW = 64  # cases that are all taken where a file changed; of hundreds it is a search that takes all


@cache
def changed() -> frozenset[str]:
    """The files that the commit and the working tree change."""
    return frozenset((measurements.git("diff", "--name-only", "HEAD^") or "").splitlines())


def _changes(*places: str) -> bool:
    """Whether the commit changes a file that is named so, or begins so."""
    return any(name.startswith(("constraints.txt", *places)) for name in changed())


def _takes_all(cases: Sequence[Any], test: str) -> bool:
    """Whether no case is left out: in a search, and where the commit changes the versions or the
    test.
    """
    return ALL or (len(cases) <= FEW and _changes(Path(test).relative_to(ROOT).as_posix()))


def some_by_commit(cases: Sequence[Any], most: int) -> list[Any]:
    """At most `most` of the cases, in order, and others in other commits; all of them after a
    change.
    """
    if _takes_all(cases, sys._getframe(1).f_code.co_filename):
        return list(cases)
    taken = random.Random(f"{measurements.seed()} {[*cases]}").sample(range(len(cases)), min(most, len(cases)))
    return [cases[place] for place in sorted(taken)]


def half_by_commit(cases: Iterable[Any], *rooms: str) -> list[Any]:
    """About half of the cases, others in other commits; all of them where the commit changes the
    test, or a file of these rooms, which it is a test of.
    """
    test = Path(sys._getframe(1).f_code.co_filename).relative_to(ROOT).as_posix()
    if ALL or _changes(test, *rooms):
        return list(cases)
    return [
        case
        for place, case in enumerate(cases)
        if int(measurements.digest(f"{measurements.seed()} {test} {place}"), 16) % 2
    ]


def taken_by_commit(case: str, share: int, rooms: Sequence[str] = ()) -> bool:
    """Whether this commit takes a case: one of `share` commits does, and each that changes a file
    of these rooms.
    """
    everything = EXAMPLES is not None or (rooms and _changes(*rooms))
    return everything or int(measurements.digest(f"{measurements.seed()} {case}"), 16) % share == 0


def one_by_commit(cases: Sequence[str]) -> list[str]:
    """One of the cases, and others in other commits; all of them after a change."""
    if _takes_all(cases, sys._getframe(1).f_code.co_filename):
        return list(cases)
    return [random.Random(measurements.seed() + " ".join(cases)).choice(cases)]
