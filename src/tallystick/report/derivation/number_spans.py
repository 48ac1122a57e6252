r"""Find a number in a text as written: with separators, LaTeX commas, or a suffix (38.6M).

>>> text = r"50257 \times 768 = 38{,}596{,}416, about 38.6M"
>>> [text[slice(*span)] for span in spotted(text, [38_596_416, 38_600_000, 768])]
['38{,}596{,}416', '38.6M', '768']
>>> spotted("768 = 768", [768])  # the result of an equation is behind its sign
[(6, 9)]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.derivations.expressions.scales import MYRIADS, WORDS
from tallystick.derivations.expressions.tokens import tokens, writes_dots
from tallystick.derivations.text.markup import plain
from tallystick.errors import BadInput

Span = tuple[int, int]

_BETWEEN = r"\{[,. ]?\}|\\[,;:! ]|\\thinspace ?|~|[.,_'’]|[ \u00a0\u2009\u202f](?=\d{3}(?!\d))"  # between two digits
_DIGITS = re.compile(rf"(?<![\w.])\d+(?:(?:{_BETWEEN})\d+)*")
_SCALE = re.compile(
    r"\s?\$?(?:\\[,;: ]|\s)*(?:\\(?:text|mathrm|,)\s*\{?\s*)?"
    rf"(?:[KMBTkmb](?![^\W\d_])|[KMGT]i?B(?![^\W_])|(?i:{WORDS})|{MYRIADS})"
)
_RELATION = re.compile(r"(?:[=≈≃~|:]|\\approx|\\sim|\\simeq)[\s&$*_`\\(]*$")
NEAR = 20  # characters before a number in which its relation sign is sought
AROUND = 80  # characters before a number in an excerpt; half of them after it
MOST_EXCERPTS = 8
MOST_PREFIXES = 4  # kibi, mebi, gibi, tebi


def spotted(text: str, wanted: Sequence[float]) -> list[Span | None]:
    """Return the span of each number, or None; numbers behind a relation sign are preferred.

    Args:
        text: the text to search.
        wanted: the numbers; each occurrence in the text is used for one of them only.
    """
    sought = {_significant(digits) for number in wanted for digits in _written(number)}
    found = list(_numbers(text, sought))
    spans: list[Span | None] = []
    used: set[int] = set()
    for number in wanted:
        fits = [span for span, value in found if number in (value, float(value)) and span[0] not in used]
        behind = [span for span in fits if _RELATION.search(text[max(0, span[0] - NEAR) : span[0]])]
        span = behind[0] if behind else fits[-1] if fits else None
        spans.append(span)
        used.update([span[0]] if span else [])
    return spans


def excerpt(text: str, numbers: Sequence[float]) -> str:
    """Return the words around the first of some numbers; "" if none of them is in the text.

    >>> excerpt("2 × 3 = 7 " + "and so on " * 9, [7])
    '2 × 3 = 7 and so on and so on and so on and so …'
    """
    ends: list[tuple[int, int]] = []
    for begin, end in sorted(span for span in spotted(text, numbers[:MOST_EXCERPTS]) if span):
        piece = max(0, begin - AROUND), end + AROUND // 2
        if ends and piece[0] <= ends[-1][1]:
            piece = ends.pop()[0], piece[1]
        ends.append(piece)
    if not ends:
        return ""
    pieces = " … ".join(_words(text, *piece) for piece in ends)
    return f"{'… ' if ends[0][0] else ''}{pieces}{' …' if ends[-1][1] < len(text) else ''}"


def _words(text: str, begin: int, end: int) -> str:
    """Return a piece of a text without partial words at its ends."""
    piece = text[begin:end]
    piece = piece.partition(" ")[2] if begin else piece
    return piece.rpartition(" ")[0] if end < len(text) else piece


def _numbers(text: str, sought: set[str]) -> Iterator[tuple[Span, Fraction]]:
    """Yield the numbers whose digits are sought, both with and without a following scale."""
    dots = writes_dots(text)
    for match in _DIGITS.finditer(text):
        if _significant(match[0]) not in sought:
            continue
        scale = _SCALE.match(text, match.end())
        for end in (scale.end() if scale else 0, match.end()):
            value = _value(text[match.start() : end], dots=dots) if end else None
            if value is not None:
                yield (match.start(), end), value


def _value(written: str, *, dots: bool) -> Fraction | None:
    """Return a number's value, parsed as in a derivation."""
    try:
        read = tokens(plain(written), dots=dots)
    except BadInput:
        return None
    return read[0].number.value if len(read) == 1 and read[0].number is not None else None


def _written(number: float) -> Iterator[str]:
    """Yield the digits of a number, also as KiB, MiB, GiB and TiB."""
    yield f"{number:.15g}" if isinstance(number, float) else str(number)
    yield from (f"{number / 1024**power:.15g}" for power in range(1, MOST_PREFIXES + 1))


def _significant(digits: str) -> str:
    """Return the significant digits: 384 for both 38.4M and 38,400,000."""
    return re.sub(r"\D", "", digits).strip("0")
