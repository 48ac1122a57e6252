"""Tell what some tokens say: units, variables, and whether an expression is all that is meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import takewhile

from tallystick.derivations.arithmetic import Number
from tallystick.derivations.expressions.tokens import Token
from tallystick.derivations.expressions.words import ADDED, ARROWS, COUNTERS, COUNTS, EACH, FUNCTIONS, JOINS, LETTERS

MOST_COUNTED = 999  # layers and other counts
LONG_PRODUCT = 3  # signs of a product whose words only say what its factors count
MOST_WORDS_BETWEEN = 5  # between a number and the next operator

# Units that may follow a number without changing its value.
_UNIT = re.compile(
    r"(?:per[-_]?)?(?:layers?|blocks?|param\w*|weights?|bias(?:es)?|heads?|tokens?|requests?|users?|sequences?|samples?|experts?|dims?|dimensions?|elements?|entries"
    r"|values?|floats?|numbers?|each|in|total|positions?|words?|vectors?|matri\w+|projections?|rows?|col(?:umn)?s?|copies"
    r"|levels|types|classes|features|slots|channels|stages|frames|patches|groups|units|inputs?|outputs?|sesgos?|biais"
    r"|modules?|neurons?|vocab\w*|bytes?|[kmgt]?i?b|\w*flops?|macs?|targets?|norms?"
    r"|schicht\w*|blöcke|bl[oö]ck\w*|gewicht\w*|couches?|blocs?|poids|capas?|bloques?|blocos?|camadas?|pesos?|octets?|[kmgt]o"
    r"|parám\w*|parâm\w*|param\w*|tham|số|сло\w+|блок\w*|параметр\w*|байт\w*|[^\x00-\u2fff]{1,6})",
    re.IGNORECASE,
)
_PRECISION = re.compile(r"(?:bf|fp|float|bfloat|int|tf)\d{1,2}", re.IGNORECASE)
# Words that change the value of a number.
_SCALES = re.compile(
    r"squared?|cubed?|dozen|hundred|half|percent|quadr|carré|cuadrad|cubo|квадрат|куб|times|mod|of$|平方|立方|倍|제곱",
    re.IGNORECASE,
)
_RATE = re.compile(rf"{_UNIT.pattern}/{_UNIT.pattern}", re.IGNORECASE)  # "12 layers × 7,087,872 params/layer"
# Words that a product of sizes may follow: "3 matrices d × 4d".
_MATRICES = re.compile(r"matri\w+|weights?|projections?|матриц\w*|行列|矩阵|행렬", re.IGNORECASE)
_QUOTIENT = re.compile(r"[^\W\d_]{1,2}/\d+")
_MEGABYTES = re.compile(r"[KMGT]i?B")
_CONTINUED = re.compile(r"\d{3}")  # digits behind a comma and a blank
_ROUNDS = re.compile(r"(?:round|ceil|floor|align)_\w+")  # round_to_64(256 * 8/3)
_NO_ADJECTIVES = JOINS | {"of", "in", "from", "out", "more", "fewer", "other", "to", "per"}


def computes(pieces: Sequence[Token]) -> bool:
    """Return whether the tokens hold a number and an operator, parseable or not."""
    kinds = {piece.kind for piece in pieces}
    return "number" in kinds and "operator" in kinds


def is_variable(token: Token) -> bool:
    """Return whether a word looks like a name in a formula: d, L, n_embd, W1."""
    named = len(token.text) == 1 or not token.text.isalpha()
    return token.kind == "word" and named and token.text not in LETTERS and "-" not in token.text


def is_function(token: Token) -> bool:
    """Return whether a word or sign is a function without a value here: √, math.sqrt, log_10."""
    name = token.text.rpartition(".")[2].lower().strip("\\")
    return name.replace("_", "") in FUNCTIONS or _ROUNDS.fullmatch(name) is not None


def is_unit(token: Token) -> bool:
    """Return whether a word can follow a number as its unit: parameters, layers."""
    word = token.text.replace("-", "").replace("/", "").removeprefix("per")  # "7,087,872 per-block", "params/layer"
    long = len(word) > 2 or word > "\u2fff"  # 個, 层
    plain = word.isalpha() or _PRECISION.fullmatch(word) is not None
    return token.kind == "word" and long and plain and word.lower() not in JOINS


def is_sure(pieces: Sequence[Token], start: int, end: int, known: Collection[str]) -> bool:
    """Return whether `pieces[start:end]` is certainly the whole expression.

    No operator or function precedes it, and its only words are known names, units and labels. A
    label precedes an addend ("+ final norm 1,536"), a unit follows a number ("12 layers"). Remarks
    in parentheses are ignored.
    """
    if end - start == 1 and not start:
        return True
    if _is_taken(pieces, start):
        return False
    long = sum(piece.text == "*" for piece in pieces[start:end]) >= LONG_PRODUCT
    depth = 0
    for place in range(start, end):
        piece = pieces[place]
        depth += (piece.kind == "open") - (piece.kind == "close")
        if (
            _is_other(piece, pieces[place + 1 : place + 2])
            or (piece.text == "/" and _ends_remark(pieces[start:place]))
            or _is_rate(pieces[:end], place, known)
            or (place > start and len(piece.text) > 1 and piece.text in known and pieces[place - 1].text in known)
        ):
            return False  # "freq_base f32" is a name and its type, not a product
        if piece.kind != "word" or piece.text in known or depth:
            continue
        if piece.text.lower() in EACH and place + 1 < end and pieces[place + 1].text == "+":
            return False  # "7.1M each + 38.6M" adds several
        rate = place > start + 1 and pieces[place - 2].text == "*" and _RATE.fullmatch(piece.text)
        said = (
            rate
            or _UNIT.fullmatch(piece.text)
            or _PRECISION.fullmatch(piece.text)
            or _is_label(pieces, place, start)
            or _names(pieces, place, known)
            or _is_each(pieces[start:end], place - start)
            or _is_multiplied(pieces, place)
        )
        if not (said or _is_adjective(pieces, place) or (long and _counts_factor(pieces, place))):
            return False
    return True


def end_of(number: Number, pieces: Sequence[Token]) -> int:
    """Return where a lone number ends: words and remarks behind it do not change it.

    Those that do, as in "2 dozen", belong to it.
    """
    place = next(place for place, piece in enumerate(pieces, 1) if piece.number is not None)
    scaled = any(piece.kind == "word" and _SCALES.search(piece.text) for piece in pieces[place : place + 1])
    return len(pieces) if scaled or pieces[place - 1].number != number else place


def _is_each(pieces: Sequence[Token], place: int) -> bool:
    """Return whether a product ends in what it is of: "22 layers × 1,183,872 per layer"."""
    per, *behind = pieces[place:]
    unit = per.text == "per" and len(behind) == 1 and _UNIT.fullmatch(behind[0].text) is not None
    counts = unit and is_count(pieces[0].number) and sum(piece.number is not None for piece in pieces) == 2
    return counts and any(piece.text == "*" for piece in pieces[:place])


def _is_multiplied(pieces: Sequence[Token], place: int) -> bool:
    """Return whether a number is of one layer, before their count: "218M per layer × 32"."""
    before, per, *behind = pieces[place - 1 : place + 5]
    unit = per.text == "per" and before.number is not None and len(behind) > 2 and _UNIT.fullmatch(behind[0].text)
    return bool(unit) and behind[1].text == "*" and is_count(behind[2].number)


def is_count(number: Number | None) -> bool:
    """Return whether a number may count layers or other parts."""
    return number is not None and not number.rounded and number.unit == 1 and number.value <= MOST_COUNTED


def counted_each(pieces: Sequence[Token], start: int) -> Number | None:
    """Return how many of a number the words before it count, or None: "8 blocks: 2.2M each"."""
    if pieces[-1].text.lower() not in EACH:
        return None
    counts = [piece.number for piece in pieces[:start] if piece.number is not None]
    operators = any(piece.kind == "operator" for piece in pieces[:start])
    return counts[0] if len(counts) == 1 and is_count(counts[0]) and not operators else None


def _counts_factor(pieces: Sequence[Token], place: int) -> bool:
    """Return whether a word of any language says what a factor counts: "16 warstw × 256 dim"."""
    before, word, *behind = pieces[place - 1 : place + 2]
    factor = place > 1 and pieces[place - 2].text == "*"
    ends = not behind or behind[0].text == "*" or (factor and behind[0].kind == "relation")
    return before.kind == "number" and ends and len(word.text) > 1 and not _SCALES.search(word.text)


def _is_adjective(pieces: Sequence[Token], place: int) -> bool:
    """Return whether a word stands between a number and its unit: "12 transformer blocks"."""
    before, word, *behind = pieces[place - 1 : place + 2]
    unit = behind and behind[0].kind == "word" and _UNIT.fullmatch(behind[0].text)
    return before.kind == "number" and word.text.isalpha() and word.text.lower() not in _NO_ADJECTIVES and bool(unit)


def _is_other(piece: Token, behind: Sequence[Token]) -> bool:
    """Return whether a sign begins a shape, "[17 × 4096]", or a function, or cuts a quotient, "//".

    Brackets with a remark or a sum begin none: "= 4.2M [attention + MLP]", "4 × [(78 + 1) × 128]".
    The letter of "1.2 MHz" is not read.
    """
    remark = bool(behind) and (behind[0].text == "(" or (behind[0].kind == "word" and not is_variable(behind[0])))
    whole = piece.text == "/" and piece.end - piece.start > 1
    called = bool(behind) and behind[0].text == "(" and is_function(piece)  # "1 - exp(-1.278)"
    return (piece.text == "[" and not remark) or called or whole or piece.text[-2:] == "Hz"


def _ends_remark(pieces: Sequence[Token]) -> bool:
    """Return whether some tokens end in words in parentheses: "1M (variant A) / 0.56M"."""
    words = [piece.kind == "word" for piece in takewhile(lambda one: one.kind != "open", reversed(pieces[:-1]))]
    return bool(pieces) and pieces[-1].kind == "close" and len(words) > 0 and all(words)


def _is_rate(pieces: Sequence[Token], place: int, known: Collection[str]) -> bool:
    """Return whether a slash before a word gives a rate: "59 MB / layer".

    "4 layers × 20M/layer" and "800 KB/token × 8192 tokens" multiply it by a number of these.
    """
    behind = pieces[place + 1 : place + 2]
    if pieces[place].text != "/" or not behind or behind[0].kind != "word" or behind[0].text in known:
        return False
    after, *count = (piece.text for piece in (*pieces[place + 2 : place + 4], pieces[place]))
    if after == "*" and count[0].isdigit():
        return False  # "~400M/layer × 58"
    others = (*pieces[:place], *pieces[place + 2 :])
    counted = (piece.text.lower() for piece in others if piece.kind == "word")
    return not any(word.startswith(behind[0].text.lower()) for word in counted)


def _names(pieces: Sequence[Token], place: int, known: Collection[str]) -> bool:
    """Return whether a word names the addend before it: "38.6M word table + 0.8M positions"."""
    first, last = place, place
    while first and pieces[first - 1].kind == "word":
        first -= 1
    while last < len(pieces) and pieces[last].kind == "word":
        last += 1
    words = pieces[first:last]
    added = first > 1 and pieces[first - 2].text == "+" and (last == len(pieces) or pieces[last].kind == "relation")
    ends = added or (last < len(pieces) and pieces[last].text in "+-")
    names = all(word.text.lower() not in JOINS and word.text not in known for word in words)
    return (
        ends
        and names
        and len(words) <= MOST_WORDS_BETWEEN
        and first > 0
        and pieces[first - 1].kind in ("number", "close")
    )


def _has_operator_before(pieces: Sequence[Token], close: int) -> bool:
    """Return whether an operator precedes a remark without a number.

    Example: "directly counted - (head) (38,597,376) = 124,412,160".

    Args:
        pieces: the tokens.
        close: place of the parenthesis that ends the remark.
    """
    place, depth = close, 1
    while place and depth:
        place -= 1
        depth += (pieces[place].kind == "close") - (pieces[place].kind == "open")
        if pieces[place].number is not None:
            return False
    return place > 0 and not depth and pieces[place - 1].kind == "operator"


def _is_taken(pieces: Sequence[Token], start: int) -> bool:
    """Return whether what precedes an expression may change its value."""
    arrow = start > 1 and pieces[start - 1].text in ARROWS and pieces[start - 2].number is not None
    comma = start > 1 and pieces[start - 1].text == "," and pieces[start - 2].end + 1 == pieces[start].start
    if arrow or comma or (start and pieces[start - 1].text[:1] == pieces[start].text[:1] == "."):
        return True  # "128 -> 32 = 128 × 32", "batch,seq 8,2048 × 4096", "0..255"
    before = pieces[start - 1] if start else None
    if before is not None and (is_function(before) or before.number is not None or before.text.lower() in COUNTS):
        return True  # "3 × 4 4 × 5 = 3 × 5" multiplies matrices; "Two 3 × 3 = 18 weights"
    near = pieces[max(0, start - 3) : start]
    several = before is not None and before.text == "of" and any(one.number or one.text == "root" for one in near)
    several = several or (before is not None and before.kind == "close" and _has_operator_before(pieces, start - 1))
    added = (word in piece.text for piece in pieces[max(0, start - 2) : start] for word in ADDED)
    if several or (start > 1 and pieces[start - 1].text.lower() in EACH) or any(added):
        return True  # "10 copies of 14GB = 140GB"; "10 GB, and with weights of 17.5 GB = 27.5 GB"
    words = start
    while words and pieces[words - 1].kind == "word" and start - words < MOST_WORDS_BETWEEN:
        words -= 1
    if not 0 < words < start:
        return False
    last = pieces[words - 1]
    if last.text == "+" and (words == 1 or pieces[words - 2].text in (",", ";")):
        return False  # "…, + words 50257 × 768 = 38.6M" begins a sentence
    # "3 matrices d × 4d" may be all three.
    counts = pieces[words].text in COUNTERS or _MATRICES.fullmatch(pieces[words].text) is not None
    return last.kind == "operator" or (last.kind == "number" and counts)


def goes_on(pieces: Sequence[Token], end: int) -> bool:
    """Return whether an expression goes on after what was read of it, or is in doubt.

    Unknown words separate it from an operator, "4 Q/K heads × 256"; its digits go on, "65, 536",
    "10.4166...%"; or the text asks, "= 82?".
    """
    if _is_cut_off(pieces, end):
        return True
    place = end
    while place < len(pieces) and pieces[place].kind == "word" and place - end < MOST_WORDS_BETWEEN:
        place += 1
    behind = pieces[place : place + 2]
    if any(piece.text.lower() in JOINS for piece in pieces[end : place - 1]):
        return False  # "= 5,120 and experts with E × 3 × d × f"
    if place == end + 1 and behind and behind[0].kind == "number" and pieces[end].text in COUNTERS:
        return True  # "16 × 16 = 4 个 8×8"
    return place > end and len(behind) > 1 and behind[0].text in "+*/" and behind[1].kind in ("number", "open")


def is_added_to(pieces: Sequence[Token], end: int) -> bool:
    """Return whether more is added behind an expression: "22B ≈ 8/128 × 235B 加上 attention"."""
    return any(word in piece.text for piece in pieces[end : end + 1] for word in ADDED)


def _is_cut_off(pieces: Sequence[Token], end: int) -> bool:
    """Return whether digits go on behind an expression, or a variable, or a question mark."""
    after = [piece.text for piece in pieces[end : end + 2]]
    close = after and pieces[end].kind == "word" and pieces[end].start == pieces[end - 1].end
    if close and (len(after[0]) == 1 or _QUOTIENT.fullmatch(after[0])):
        return pieces[end - 1].number is not None  # "2.67 - 1.33p", "3ℏω/2" have a variable without a value
    if after and pieces[end - 1].kind == "word" and _MEGABYTES.fullmatch(after[0]):
        return True  # "m × 16 MB × 2 = 32m MB"
    if after[:1] in (["?"], ["？"], ["…"], ["⋯"]) or after == [".", "."]:
        return True
    return (
        len(after) == 2
        and after[0] == ","
        and bool(_CONTINUED.fullmatch(after[1]))
        and pieces[end - 1].text.isdecimal()
    )


def _is_label(pieces: Sequence[Token], place: int, start: int) -> bool:
    """Return whether a word is between a number and a preceding sign, or at the start."""
    while place > start and pieces[place].kind == "word":
        place -= 1
    return pieces[place].text in "+-" or (place == start and pieces[start].kind == "word")
