"""Sizes that an equation shows: "C * 3C = 768 * 2304" says that C is 768.

>>> dict(shown_sizes("C * 4C = 768 * 3072 ≈ 2.36M"))
{'C': 768}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FACTOR = r"\d{0,2}[A-Za-z](?:\w{0,20})"
_NUMBER = r"\d[\d,_]{0,12}"
_SHOWN = re.compile(
    rf"(?<![\w*+/^().-])(?<![*+/^-]\s)({_FACTOR}(?:\s*\*\s*{_FACTOR})+)\s*=\s*({_NUMBER}(?:\s*\*\s*{_NUMBER})+)(?![\w.])"
)
_TIMES = re.compile(r"\s*\*\s*")
_COUNTED = re.compile(r"(\d*)(\w+)")


def shown_sizes(text: str) -> Iterator[tuple[str, int]]:
    """Yield each variable of a product, with the factor at its place in the product of numbers.

    Args:
        text: one line without markup. Products whose factors contradict each other show nothing.
    """
    for match in _SHOWN.finditer(text) if "*" in text else ():
        names, numbers = (_TIMES.split(side) for side in match.groups())
        found: dict[str, int] = {}
        for one, number in zip(names, numbers, strict=False) if len(names) == len(numbers) else ():
            counted = _COUNTED.fullmatch(one)
            size, rest = divmod(int(re.sub(r"\D", "", number)), int(counted[1] or 1)) if counted else (0, 1)
            if counted is None or rest or found.setdefault(counted[2], size) != size:
                break
        else:
            yield from found.items()
