"""Sizes that an equation shows: "C * 3C = 768 * 2304" says that C is 768.

>>> dict(shown_sizes("C * 4C = 768 * 3072 ≈ 2.36M"))
{'C': 768}
>>> dict(shown_sizes("4 * d_model * d_model = 4 * 768^2"))
{'d_model': 768}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_POWER = r"(?:\^\(?\d\)?)?"
_FACTOR = rf"(?:\d{{0,2}}[A-Za-z](?:\w{{0,20}})|\d{{1,4}}){_POWER}"
_NUMBER = rf"\d[\d,_]{{0,12}}{_POWER}"
_SHOWN = re.compile(
    rf"(?<![\w*+/^().-])(?<![*+/^-]\s)({_FACTOR}(?:\s*\*\s*{_FACTOR})+)\s*=\s*({_NUMBER}(?:\s*\*\s*{_NUMBER})+)(?![\w.])"
)
_TIMES = re.compile(r"\s*\*\s*")
_COUNTED = re.compile(r"(\d*)([A-Za-z]\w*)")


def shown_sizes(text: str) -> Iterator[tuple[str, int]]:
    """Yield each variable of a product, with the factor at its place in the product of numbers.

    Args:
        text: one line without markup. Products whose factors contradict each other show nothing.
    """
    for match in _SHOWN.finditer(text) if "*" in text else ():
        names, numbers = (_powers(_TIMES.split(side)) for side in match.groups())
        found: dict[str, int] = {}
        for one, number in zip(names, numbers, strict=False) if len(names) == len(numbers) else ():
            (name, power), (digits, same) = _parts(one), _parts(number)
            counted = _COUNTED.fullmatch(name)
            size, rest = divmod(int(re.sub(r"\D", "", digits)), int((counted and counted[1]) or 1))
            shows = counted is None and name == digits  # a number on both sides shows nothing
            if power != same or rest or not (shows or (counted and found.setdefault(counted[2], size) == size)):
                break
        else:
            yield from found.items()


def _powers(factors: list[str]) -> list[str]:
    """Return factors with those that repeat as a power: "4 * d * d" of "4 * 768^2"."""
    found = [(factor, len(list(same))) for factor, same in groupby(factors)]
    return [factor if times == 1 else f"{factor}^{times}" for factor, times in found]


def _parts(factor: str) -> tuple[str, str]:
    """Return a factor without its power, and the power."""
    base, _, power = factor.partition("^")
    return base, power.strip("()")
