"""Rewrite the tokens of a line before its chains are read: settings, sizes and shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tallystick.derivations.expressions.phrases import computes, is_count, is_function
from tallystick.derivations.expressions.tokens import Token
from tallystick.derivations.expressions.words import ABOUT, ARROWS, PLUS
from tallystick.derivations.reading import LEAST_SUM

_PLUS = re.compile(rf"\b(?:{'|'.join(sorted(PLUS))})\b", re.IGNORECASE)
MOST_RESULTS = 6  # of a line, that a product behind them may multiply
MOST_BEHIND = 12  # tokens of that product
_GOES_ON = re.compile(r"[.,;]\s*\*\s*\d")  # a product that begins with its sign
_ENDS = (".", ",", ";")  # of a sentence, or of a part of one
_SETTING = ["open", "word", "relation", "number", "close"]  # kinds of the tokens of "(TP=4)"


def factor_around(pieces: Sequence[Token], cut: int) -> tuple[int, int]:
    """Return the places of the parentheses that are a factor and hold a relation, or zeros.

    Args:
        pieces: the tokens of a text.
        cut: the place of the relation; 0 if there is none.
    """
    start = next((place for place in range(cut - 1, 0, -1) if pieces[place].kind in ("open", "close")), 0)
    end = next((place for place in range(cut + 1, len(pieces)) if pieces[place].kind != "number"), 0)
    factor = start and end and pieces[start].kind == "open" and pieces[start - 1].kind == "operator"
    return (start, end) if factor and pieces[end].kind == "close" and computes(pieces[start:cut]) else (0, 0)


def without_settings(pieces: Sequence[Token]) -> Sequence[Token]:
    """Return tokens without settings in parentheses behind numbers: "30,720,000 / 8 (TP=8)"."""
    kinds = [piece.kind for piece in pieces]
    places = [
        place
        for place in range(1, len(pieces) - len(_SETTING) + 1)
        if kinds[place] == "open" and kinds[place - 1] == "number" and kinds[place : place + len(_SETTING)] == _SETTING
    ]
    inside = {place + step for place in places for step in range(len(_SETTING))}
    return [piece for place, piece in enumerate(pieces) if place not in inside] if inside else pieces


def without_about(pieces: Sequence[Token]) -> Sequence[Token]:
    """Return tokens without the words for ≈ that begin a remark: "2,753,024 (about 2.75M)"."""
    behind = {place + 1 for place, piece in enumerate(pieces) if piece.kind == "open"}
    about = {place for place in behind if place < len(pieces) and pieces[place].text.lower() in ABOUT}
    return [piece for place, piece in enumerate(pieces) if place not in about] if about else pieces


def in_plain_order(pieces: Sequence[Token], text: str) -> Sequence[Token]:
    """Return the tokens of a text with products and sums whole, and with no ``~`` before a chain.

    Examples: "176M per layer. × 32 = 5.6B", "218M → × 32 = 6.98B", "= 6.97B plus 1.24B = 8.21B",
    "8 blocks: ~2.2M each = 17.6M".
    """
    if _GOES_ON.search(text):
        pieces = _with_results(pieces)
    if "→" in text:
        pieces = _without_arrows(pieces)
    if _PLUS.search(text):
        pieces = _with_plus(pieces)
    if "~" in text or "≈" in text:
        return _without_mark(pieces)
    return pieces


def _without_arrows(pieces: Sequence[Token]) -> Sequence[Token]:
    """Return tokens without arrows before a sign of multiplication, or with one as equals sign.

    Examples: "218M → × 32 = 6.98B", "≈ 1.81 GB + embedding 1.24 GB → ~3.05 GB total".
    """
    times = {place for place, piece in enumerate(pieces) if piece.text == "*"}
    found = [piece for place, piece in enumerate(pieces) if piece.text not in ARROWS or place + 1 not in times]
    arrow = max((place for place, piece in enumerate(found) if piece.text in ARROWS), default=0)
    since = max((place for place in range(arrow) if found[place].kind == "relation"), default=0)
    about = [piece.text for piece in found[arrow + 1 : arrow + 2]] in (["~"], ["≈"])
    kinds = [piece.kind for piece in found[arrow + 1 + about :]]
    adds = any(piece.text == "+" for piece in found[since + 2 : arrow])  # no sign: "= +786,432 → 125,226,240"
    if since and adds and kinds[:1] == ["number"] and set(kinds[1:]) <= {"word"}:
        sign = found[arrow]._replace(kind="relation", text="≈" if about else "=")
        found[arrow : arrow + 1 + about] = [sign]
    return found


def _with_plus(pieces: Sequence[Token]) -> list[Token]:
    """Return tokens with a plus sign for "plus" between two large numbers."""
    found: list[Token] = []
    for place, piece in enumerate(pieces):
        behind = pieces[place + 1 : place + 3]
        if behind and behind[0].text in "~≈":
            behind = behind[1:]
        around = [*[one for one in found[-2:] if one.number is not None][-1:], *behind[:1]]
        large = [one.number is not None and one.number.value >= LEAST_SUM for one in around] == [True, True]
        if found and found[-1].text == "+" and piece.text in "~≈":
            continue
        adds = large and piece.text.lower() in PLUS
        found.append(piece._replace(kind="operator", text="+") if adds else piece)
    return found


def _without_mark(pieces: Sequence[Token]) -> Sequence[Token]:
    """Return tokens without a ``~`` behind the label of a chain: "8 blocks: ~2.2M each = 17.6M"."""
    cuts = [place for place, piece in enumerate(pieces) if piece.kind == "relation"]
    if len(cuts) < 2:
        return pieces
    first, *behind = (pieces[place].text for place in cuts)
    marks = behind[:1] in (["="], ["≈"]) and first in "~≈" and cuts[0] and pieces[cuts[0] - 1].text in ":\uff1a"
    return [*pieces[: cuts[0]], *pieces[cuts[0] + 1 :]] if marks else pieces


def _with_results(pieces: Sequence[Token]) -> list[Token]:
    """Insert the result of a chain before the product that goes on from it in the next sentence.

    Examples: "3 × 4096 × 14336 ≈ 176M per layer. × 32 layers = 5.6B"; of several results the last
    one or their sum, which is nearer: "4 × 4096² = 67.1M; 3 × 4096 × 11008 = 135.3M; × 32 = 6.48B";
    or the first number: "124.4M params; × 4 bytes = 497.8 MB, × 2 bytes = 248.9 MB".
    """
    found: list[Token] = []
    results: list[Token] = []
    first = next((piece for piece in pieces if piece.number is not None), None)
    ended = False  # whether only words stand behind the last result
    for place, piece in enumerate(pieces):
        times = piece.text == "*" and pieces[place - 1].text in _ENDS
        if times and ended and any(is_count(one.number) for one in pieces[place + 1 : place + 2]):
            found += [
                one._replace(start=piece.start, end=piece.start)
                for one in _multiplied(results, first, pieces[place : place + MOST_BEHIND])
            ]
        if (
            piece.number is not None
            and place
            and (pieces[place - 1].kind == "relation" or pieces[place - 1].text in ":\uff1a")
            and [one.text for one in pieces[place + 1 : place + 2]] != ["*"]  # "q: 8 × 8192 = 65,536"
        ):
            ended = True
            results = [*results[1 - MOST_RESULTS :], piece]
        elif piece.kind not in ("word", "stop"):
            ended = False
        found.append(piece)
    return found


def _multiplied(results: Sequence[Token], first: Token | None, behind: Sequence[Token]) -> list[Token]:
    """Return what a product goes on from: the last result, the sum of some, or the first number.

    Args:
        results: of the chains before it.
        first: the first number of the line, if it has any.
        behind: the sign of multiplication, the count, and what follows.
    """
    count, *stated = [piece.number.value for piece in behind if piece.number is not None][:3]
    if [piece.text for piece in behind[2:3]] == ["/"] and stated and stated[0]:  # "× 2/3"
        count /= stated.pop(0)
    numbers = [piece.number.value for piece in results if piece.number is not None]
    sign = behind[0]
    if not stated:
        return [results[-1]]
    # The last results: one of them, two and so on; the first of a line may be a setting
    away = [abs(count * sum(numbers[-several:]) - stated[0]) for several in range(1, len(numbers) + 1)]
    several = 1 + away.index(min(away))
    if first is not None and first.number is not None and abs(count * first.number.value - stated[0]) < min(away):
        return [first]
    if several == 1:
        return [results[-1]]
    added = [one for result in results[-several:] for one in (result, sign._replace(text="+"))][:-1]
    return [sign._replace(kind="open", text="("), *added, sign._replace(kind="close", text=")")]


def with_sizes(pieces: Sequence[Token]) -> list[Token]:
    """Replace each variable with its size in parentheses by the size, where it is multiplied.

    Example: "d_query (128) * d_embed (12,288) = 1,572,864".
    """
    found: list[Token] = []
    place = 0
    while place < len(pieces):
        name, *rest = pieces[place : place + 4]
        kinds = [piece.kind for piece in rest[:3]]
        sized = (
            name.kind == "word" and "_" in name.text and not is_function(name) and kinds == ["open", "number", "close"]
        )
        sized = sized and rest[0].text == "("  # "grid_size[0] * 3" takes an item
        around = [*pieces[max(0, place - 1) : place], *pieces[place + 4 : place + 5]]
        if sized and any(piece.text == "*" for piece in around):
            found.append(rest[1])
            place += 4
        else:
            found.append(name)
            place += 1
    return found


def with_shapes(pieces: Sequence[Token]) -> list[Token]:
    """Replace each shape that is multiplied or added by the product of its sizes.

    Examples: "[32, 12, 2048, 64] × 2 bytes = 100 MB", "Q(384 → 384) + K(384 → 128) = 197K".
    """
    found = list(pieces)
    arrows = [place for place in range(2, len(found) - 2) if _is_matrix(found[place - 2 : place + 3])]
    for place in arrows if len(arrows) > 1 else ():
        found[place] = found[place]._replace(kind="operator", text="*")
    for place, piece in enumerate(found):
        if piece.text != "[":
            continue
        end = place + 2
        while end + 1 < len(found) and found[end].text == "," and found[end + 1].number is not None:
            end += 2
        inner = found[place + 1 : end]
        if end > place + 2 and inner[0].number is not None and [one.text for one in found[end : end + 2]] == ["]", "*"]:
            sizes = [one if one.number is not None else one._replace(kind="operator", text="*") for one in inner]
            found[place : end + 1] = [piece._replace(text="("), *sizes, found[end]._replace(text=")")]
    return found


def _is_matrix(pieces: Sequence[Token]) -> bool:
    """Return whether some tokens are the two sizes of a matrix: "(384 → 128)"."""
    kinds = [piece.kind for piece in pieces]
    return pieces[2].text in ARROWS and (kinds[:2], kinds[3:]) == (["open", "number"], ["number", "close"])
