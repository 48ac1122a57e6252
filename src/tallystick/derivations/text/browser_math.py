r"""Formulas copied from a browser: rendered, as LaTeX and rendered again, without separators.

>>> print(once(r"MLP: 2×7682=1,179,6482 \times 768^2 = 1{,}179{,}6482×7682=1,179,648").rstrip())
MLP:  2 \times 768^2 = 1{,}179{,}648
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

LEAST, MOST = 5, 400  # characters of a formula; a shorter one may repeat by chance
LONGEST = 1_500  # characters of a searched line
MOST_TRIED = 6  # candidate positions of the second copy, per start position
_SHOWN = {
    "times": "×",
    "cdot": "×",
    "approx": "≈",
    "div": "÷",
    "sim": "∼",
    "quad": "",
    "text": "",
    "mathrm": "",
    "left": "",
    "right": "",
}
_SPACE = r"\\[,;:! ]"  # of LaTeX
_PIECE = re.compile(rf"(?P<unseen>\\color\s*\{{\w+\}}|{_SPACE})|\\(?P<command>[A-Za-z]+)|\\.|.", re.DOTALL)
_SAME = str.maketrans({"*": "×", "∗": "×", "⋅": "×", "·": "×", "−": "-", "–": "-"})
_MARKS = re.compile(rf"(?:{_SPACE}|[\s{{}}^_$\\])+")
_ASTERISK = "\u2217"  # as a browser draws "*"; the last copy may have lost it
_NUMBER = re.compile(r"(?<![\d.,])(\d{4,})\s\1\s\1(?![\d.,])")
_SHORT = re.compile(r"([^\W\d]\w?=\d{1,2})\1\1")  # L=12L = 12L=12
_BETWEEN = re.compile(r"\$([^$]+)\$")
_COMPUTES = re.compile(r"\d.*[=×+≈^/]|[=×+≈/].*\d")


def may_repeat(line: str) -> bool:
    """Return whether a line may hold a formula three times."""
    return line.count("=") > 2 or "\\" in line or _ASTERISK in line or ("$" in line and line.count("=") > 1)


def once(line: str) -> str:
    """Reduce each formula that occurs three times in a row to its second copy, the source.

    So is one that occurs twice, and is all that stands between two dollar signs.
    """
    if "$" in line:
        line = _BETWEEN.sub(_second, line)
    signs = _ASTERISK not in line
    if not signs:
        line = _NUMBER.sub(r"  \1", line)
    for _ in range(20):
        shown = [one for one in _characters(line) if signs or one[0] != "×"]
        found = _thrice("".join(character for character, _ in shown), [place for _, place in shown], line)
        if found is None:
            return line
        first, second, third, end = found
        line = f"{line[:first]} {line[second:third]} {line[end:]}"
    return line


def _second(formula: re.Match[str]) -> str:
    """Return the second copy of a formula, "$254−127=127254 - 127 = 127$", or the formula."""
    shown = list(_characters(formula[1]))
    half = len(shown) // 2
    text = "".join(character for character, _ in shown)
    if half < LEAST or text[:half] != text[half:] or not _COMPUTES.search(text[:half]):
        return formula[0]
    return f"${formula[1][shown[half][1] :]}$"


def _characters(line: str) -> Iterator[tuple[str, int]]:
    """Yield each visible character of a line with its position in the source."""
    for piece in _PIECE.finditer(line):
        if piece["command"]:
            for character in _SHOWN.get(piece["command"], piece["command"]):
                yield character, piece.start()
        elif not piece["unseen"]:
            character = piece[0].removeprefix("\\")
            if not character.isspace() and character not in "{}^_$\\":
                yield character.translate(_SAME), piece.start()


def _thrice(text: str, places: list[int], line: str) -> list[int] | None:
    """Find the longest formula that occurs three times in a row in a line.

    Return the three start positions and the end, or None.
    """
    best: tuple[int, int] | None = None
    places = [*places, len(line)]

    def at(start: int, length: int) -> list[int]:
        return [places[start + times * length] for times in range(4)]

    for start in range(len(text) - 3 * LEAST + 1) if len(text) <= LONGEST else ():
        again = start + (LEAST if best is None else best[1] + 1) - 1
        for _ in range(MOST_TRIED):
            again = text.find(text[start : start + LEAST], again + 1, start + MOST + LEAST)
            if again < 0:
                break
            length, one = again - start, text[start:again]
            if text.startswith(one, again) and text.startswith(one, again + length) and _COMPUTES.search(one):
                if "=" not in one and _alike(line, at(start, length)):
                    continue  # "589,824 + 589,824 + 589,824 + 589,824" is a sum of four addends
                best = start, length
    if best is None and len(text) <= LONGEST and (short := _SHORT.search(text)) is not None:
        best = short.start(), len(short[1])
    return None if best is None else at(*best)


def _alike(line: str, places: list[int]) -> bool:
    """Return whether all three copies are spelled alike, so that none is the LaTeX source."""
    first, second, third = (_MARKS.sub("", line[start:end]) for start, end in pairwise(places))
    return first == second == third
