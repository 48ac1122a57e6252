"""Tell what an expression counts, by the words after its last number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from tallystick.derivations.expressions.phrases import is_count
from tallystick.derivations.expressions.tokens import LEAST_BYTES, MOST_WIDE, Token

NEAR = 10  # a number within a tenth of another one restates it
_COUNTED = {
    "bytes": re.compile(
        r"(?<![^\W\d_])(?:[KMGT]i?B|(?-i:[KkMG]i?o)|bytes?|octets?|байт\w*|ba[jy]t\w*|[КМГТ]и?Б)(?![^\W_])|字节|バイト|바이트",
        re.IGNORECASE,
    ),
    "seconds": re.compile(
        r"(?<![^\W\d_])(?<![/'\u2019])(?:[mnuµ]?s|sec|(?:milli|micro|nano)?seconds?|minutes?|hours?|days?|years?|секунд\w*|мс)(?![^\W_])|毫?秒|分钟|小时|天|年|초",
        re.IGNORECASE,
    ),
    "operations": re.compile(r"FLOP|\bops\b", re.IGNORECASE),
    "multiplications": re.compile(r"MACs?\b", re.IGNORECASE),  # one is two operations
    "parameters": re.compile(
        r"\b(?:param|parâm|parám|weights?\b|floats?\b|elements?\b|gewichte|poids|pesos|параметр)|参数|參數|パラメータ|파라미터",
        re.IGNORECASE,
    ),
}


def unit_of(pieces: Sequence[Token]) -> str:
    """Return what an expression counts, according to the words after its last number.

    The result is "parameters", "bytes", "seconds", "operations", "multiplications" or "". If a
    product or quotient ends in a count, it has the unit before that: "1.27 MB × 30".
    """
    plain = pieces and pieces[-1].kind == "number" and pieces[-1].text[-1:].isdigit()
    if plain and not (len(pieces) > 1 and pieces[-2].text in "*/") and all(piece.kind != "open" for piece in pieces):
        return ""  # much faster
    depths = accumulate((piece.kind == "open") - (piece.kind == "close") for piece in pieces)
    numbers = [(depth > 0, place) for place, depth in enumerate(depths) if pieces[place].number is not None]
    # In "3.5 GB (a quarter: 1/4)" the parentheses only comment.
    outer = [place for inside, place in numbers if inside == min(numbers)[0]]
    for last in reversed(outer):
        behind = () if _has_remark(pieces[last : last + 4]) else pieces[last + 1 : last + 3]
        words = [pieces[last].text.lstrip("0123456789.,_ "), *(piece.text for piece in behind)]
        text = " ".join(words).replace("Mio.", "")  # a million in German; "Mio" are bytes in French
        unit = next((unit for unit, pattern in _COUNTED.items() if pattern.search(text)), "")
        if "B" in words[:2] and _counts_bytes(pieces, last):
            return "bytes"
        bare = not any(piece.kind == "word" for piece in pieces[last + 1 : last + 2])
        before = pieces[last - 1].text if last else ""
        if unit or not (bare and ((is_count(pieces[last].number) and before in "*/") or before == "*")):
            return unit
    return ""


def _has_remark(pieces: Sequence[Token]) -> bool:
    """Return whether a number in parentheses behind another is of something else.

    Examples: "14,912,384 (≈ 30 MB)" parameters, but not "30,000,000 (28.6 MB)".
    """
    if len(pieces) < 3 or pieces[1].kind != "open":
        return False
    number, inside = pieces[0].number, next((piece.number for piece in pieces[2:] if piece.number is not None), None)
    apart = number is not None and inside is not None and abs(number.value - inside.value) * NEAR > number.value
    return apart and inside is not None and inside.rounded


def _counts_bytes(pieces: Sequence[Token], place: int) -> bool:
    """Return whether B behind a number is of bytes: "805,306,368 B", "× 2 B"."""
    number = pieces[place].number
    if number is None or number.rounded:
        return False  # 6.74 B are billions
    return number.value >= LEAST_BYTES or (number.value <= MOST_WIDE and place > 0 and pieces[place - 1].text == "*")
