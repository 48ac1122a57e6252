"""Parse the values over which an argument is varied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tallystick.errors import BadInput, quoted

FEWEST_VALUES = 3  # a line fits any two points; a third checks it
LARGEST = 2**63 - 2

_WRITTEN = (
    "expected a range 64:256, with a step 64:256:32, values 64,128,256, or true,false"
    " (in Python a tuple (64, 256, 32) or a range, a list of values, or [True, False])"
)


def choices_of(argument: str, given: Any) -> Sequence[int]:
    """Return the values of one argument: a `range`, a sorted list, or both booleans for a switch.

    Args:
        argument: its name, for messages.
        given: ``"64:256"``, ``"64:256:32"``, ``"64,128,256"`` or ``"true,false"``; a tuple of
            lowest value, highest value and optional step; a list of values; a `range`. Strings and
            tuples include the highest value.

    Raises:
        BadInput: for anything else, and for fewer values than a formula needs.
    """
    values = _parsed(given) if isinstance(given, str) else _listed(argument, given)
    if values is None:
        raise BadInput(f"{argument} cannot be varied over {quoted(given)}: {_WRITTEN}", code="bad-value")
    if isinstance(values[0] if values else 0, bool):
        if len(values) < 2:
            raise BadInput(
                f"{argument} is varied over only {quoted(given)}: write true,false, or set it instead",
                code="bad-value",
            )
        return values
    if values and (min(values[0], values[-1]) < 0 or max(values[0], values[-1]) > LARGEST):
        raise BadInput(
            f"{argument} is varied over {quoted(given)}: sizes are integers of 0 or more, below 2^63", code="bad-value"
        )
    if len(values) < FEWEST_VALUES:
        hint = (
            f"; a tuple means lowest, highest, step; for values write the list {list(given)}"
            if _is_stepped(given)
            else ""
        )
        raise BadInput(
            f"{argument} is varied over {quoted(given)}, which has {len(values)} values; a formula needs at"
            f" least {FEWEST_VALUES}{hint}",
            code="bad-value",
        )
    return values


def _parsed(text: str) -> Sequence[int] | None:
    """Parse a command-line string; return None if it is neither a range nor values."""
    ends = re.fullmatch(r"(\d{1,20}):(\d{1,20})(?::(\d{1,20}))?", text)
    if ends:
        step = int(ends[3] or 1)
        return range(int(ends[1]), int(ends[2]) + 1, step) if step else None
    if re.fullmatch(r"\d{1,20}(,\d{1,20})*", text):
        return sorted({int(value) for value in text.split(",")})
    if re.fullmatch(r"(true|false)(,(true|false))*", text, re.IGNORECASE):
        return sorted({word == "true" for word in text.lower().split(",")})
    return None


def _listed(argument: str, given: Any) -> Sequence[int] | None:
    """Read a Python value: a tuple is a range, a list holds values; None for anything else."""
    if isinstance(given, range):
        return given
    if not isinstance(given, list | tuple) or not given:
        return None
    if all(type(value) is bool for value in given):
        return sorted(set(given))
    if not all(type(value) is int for value in given):
        return None
    if isinstance(given, list):
        return sorted(set(given))
    if len(given) not in (2, 3):
        raise BadInput(
            f"{argument} cannot be varied over {quoted(given)}: a tuple means lowest, highest and optional"
            f" step; for values write the list {list(given)}",
            code="bad-value",
        )
    low, high, step = (*given, 1)[:3]
    return range(low, high + 1, step) if step > 0 else None


def _is_stepped(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 3
