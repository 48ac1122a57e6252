"""Split a line into tokens: numbers in every spelling, words, operators, relations.

>>> [token.text for token in tokens("12 layers × 7.1M ≈ 85M".replace("×", "*"))]
['12', 'layers', '*', '7.1M', '≈', '85M']
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from tallystick.derivations.arithmetic import Number
from tallystick.derivations.expressions.scales import MYRIADS, SCALES, WORDS
from tallystick.errors import BadInput

MOST_NESTED = 100  # levels of nested parentheses, signs and powers
LEAST_FACTORS = 2  # before the bytes of a number
MOST_WIDE = 8  # bytes of a parameter
MOST_STATES = 32  # the same with its gradient and the optimizer's states
LEAST_SCALED = 100  # "524k" is in thousands, though the text has a variable k; "12k" may multiply it
LEAST_BYTES = 10_000  # "180,224 B" are bytes: nobody writes that many billions
LEAST_POWER, MOST_POWER = 3, 30  # of ten, behind a number
MOST_FIRST = 10  # a larger number without decimals is a factor: 12 × 10^6
MOST_RANGE = 3  # times its lower end is the upper end of a range: "1.0-1.2B"
MOST_DIGITS = 280  # a unit after it multiplies it, and a float holds 308 digits

_BYTES = {
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_LATIN = str.maketrans("кмгти", "kmgti")  # "128 КиБ" are KiB

_DOTTED = r"[1-9]\d{0,2}(?:\.\d{3})+(?![\d.]{0,20}\d)(?:,\d+)?"  # 50.257, if the text groups by dots
_INDIAN = r"(?<![,.\d])[1-9]\d?(?:,\d\d){1,4},\d{3}(?![,.]?\d)"  # 3,85,97,376
_GROUPED = r"(?!0[,.])\d{1,3}(?:(?:,\d{3})+|(?:['’]\d{3})+|(?:_\d{3})+|(?: \d{3})+)(?![\d_])(?:\.\d+)?"
_COMMAS = r"[1-9]\d{0,2}(?:,\d{3}){2,}(?![\d,])"  # groups by commas, though the text also groups by dots
_BLANKS = r"[1-9]\d{0,2}(?: \d{3})+(?!\d|[,.]\d)"  # or by blanks
_COMMA = rf"\d+,\d{{1,3}}(?=\s?(?:[KMBTG%](?!\w)|[KMGTКМГТ][iи]?[BoБ](?!\w)|(?i:{WORDS})))|(?<=\*)\d,\d{{1,2}}(?=\s?\*)"  # 38,6M, 3*2,6*4096
_SLIPPED = r"(?<![(\[{,])[1-9]\d{0,2}(?:,\d{3})*,(?:\d{4},\d\d|\d\d,\d{4})(?![\d,.])"  # 30,8256,00
_PLAIN = r"\d+(?:\.\d+)?|(?<!\w)\.\d+"
_POWER = r"(?P<power>[eE][+-]?\d{1,4}(?!\w|\.\d))?"
_SUFFIX = re.compile(
    r"(?P<scale>[KkMmBbTG]|mn|bn)(?![0-9A-Za-z_^\u00c0-\u04ff])|\s(?P<spaced>[KMBGКМ])(?!\w)|\s{0,2}(?P<flops>[KMGTP])(?=(?:FLOP|MAC|OP)s?|b(?:ps|it)|b/s)"
    rf"|\s{{0,3}}(?P<word>(?i:{WORDS}))(?!\w)(?:(?<=(?i:mio|mrd|mln|mld|tsd|тыс|млн|лрд))\.(?=\s*(?:[-+*/=≈);]|$)|\s+[^\W\d]))?(?:\s+d[ei](?=\s+\w))?"
    rf"|\s?(?P<myriad>{MYRIADS})"
    r"|\s?(?P<bytes>[KkMGTКМГТ][iи]?(?=[BБ])|[KkMG]i?(?=o))[BoБ](?!\w)|\s?(?P<percent>%)"
)
# 约等于110M: in scripts without blanks a number begins at its first digit
_WORD = re.compile(
    r"(?:[^\W\d]\w{0,60}?)?[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?=\d)|\\?[^\W\d]\w*(?:[.'’][^\W\d]\w*)*"
)
_HYPHENED = re.compile(r"(?:[-/][^\W_]\w*)+")
_NO_NUMBER = re.compile(
    r"0[xX][0-9A-Fa-f]+(?![\d.,×*])"  # an address or a size in a log
    r"|(?:19|20)\d\d([-/])(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?![\w-])"  # 2026-04-22
)
_TIMES = re.compile(r"[xX](?!\d\s*=\s*-?\d{1,3}\.\d)(?=\s*[\d(\[{]|\s+\w)")
_NO_RELATION = re.compile(r"={3,}|[!<>]=|[=-]+>|<[=-]+|[≠≤≥<>]")
_COMMENT = re.compile(r"(?:(?<=;)|(?<=;\s)|(?<=;\s\s))//")  # of code
_RELATION = re.compile(r"[:=]?=|≈|~=?")
_OPERATOR = re.compile(r"\*\*|//|[-+*/^]")
_LAST = re.compile(r"\d{1,4}")  # of 2443万9808, which is exact
_MYRIADS = "万萬만亿億억兆조"  # in ascending order
_OPERATED = frozenset("*/^+-")
_OPERATORS = {"**": "^", "//": "/"}
_IN_BYTES = re.compile(r"[=≈]\s*~?[\d.,]+\s*[KMGT]i?B\b")  # "4 B = 93.8 MB"
# "2B = 327,680 B", "4B = 16 KB"
_ALL_BYTES = re.compile(r"B\s*[=≈]\s*~?(?:\d[\d.,]{3,}\s+(?:B|[Bb]ytes)|\d[\d.,]*\s?[KM]i?B)\b")
# "16 × 4 × 4096 × 256 × 2B × 2 (K+V) = 268 MB"
_WIDE_BYTES = re.compile(r"B(?:\s*\([^()]*\))?(?:\s*\*\s*\d+(?:\s*\([^()]*\))?)*\s*[=≈]\s*~?[\d.,]+\s*[KMGT]i?B\b")
# "weights (2B) + gradients (2B) + moments (8B) = 12 bytes"
_ADDED_BYTES = re.compile(
    r"B\)?\s*(?:\+(?:[^=≈*+:\d]|(?<=\w)\d){0,60}\(?\d+\s?B\)?\s*){0,8}[=≈]\s*~?\d+(?:\.\d+)?\s*(?:bytes\b|B\s?/)"
)
_TIMES_LETTERED = re.compile(r"(?<![\w.,])\d[\d.,]*\s?[KMBT]\s*[*x]\s*$")  # "7B × 2B (BF16) = 14 GB"
_LETTERED = re.compile(r"\d\s?[KMBT]\b")
_ARE_BYTES = re.compile(r"\s*B\s*[=≈]\s*~?[\d.,]+\s*[KMGT]i?B\b")  # "8320 B ≈ 8 KB"
_PER_PARAMETER = re.compile(r"\s?B\s?/\s?(?:param|weight|elem|value|num)\w*")  # bytes
_SCALE_BEHIND = re.compile(r"[KMGBT](?![\w(^])")  # "(1.77 + 0.59)M"
_RANGE = re.compile(r"~(?=\d)")  # "3~5%"

# Two dots in a number group thousands: a text with 38.597.376 also writes 50.257.
_WRITES_DOTS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:\.\d{3}){2,}(?![\d.])")
# "0,8 + 1 = 1,8 GB" has decimals behind commas; "Llama 3.1" is a name. "8,2048 × 4096" is a shape.
_BEHIND_COMMA = re.compile(
    rf"(?<![\w.,\[(])(?:\d{{1,4}},\d{{1,2}}|(?:0,\d{{4,6}}|\d{{1,4}},\d{{4,6}}(?!\s?[×*x])))(?=\s?(?:[KMBGT%×*x+/=≈)-]|[A-ZКМГТ]\w|(?i:{WORDS})))"
)
_BEHIND_POINT = re.compile(r"(?P<name>\b[A-Z][A-Za-z-]*[ -])?(?<![\w.])\d+\.(?:\d{1,2}|\d{4,})(?![.\w])")
_BY_COMMAS = re.compile(
    rf"(?<![\d,.])[1-9]\d{{0,2}}(?:,\d{{3}})+(?![\d,])(?<!(?<!,\d\d\d),\d\d\d(?=\s?(?:[KMBG](?!\w)|(?i:{WORDS})|Bit)))"
)
_BELOW_ONE = re.compile(rf"(?<![\w.,])0,\d{{3}}(?=\s?(?:[KMBG%](?!\w)|(?i:{WORDS})))")  # "0,786 Mio."
# Units of texts with commas before decimals, and a point that groups thousands
_GERMAN = re.compile(
    r"\d\s?(?:Mi[ol]|Mrd|Millionen|Milliarden|(?:mil )?mill?(?:ones|ón)|milh(?:ões|ão)|milion[ei]|miliard[ei])\b",
    re.IGNORECASE,
)
_GROUPS_BY_POINT = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,])")
_IN_COMMAS = re.compile(r"\d,\d{3},\d")
_LEAST_COMMAS = 2  # decimals behind commas that settle how a text writes them
# A text with 9 437 184 and 0,7M, and without 0.7 or 9,437,184, has commas before its decimals.
_WRITES_BLANKS = re.compile(r"(?<![\d.,] )(?<![\d.,])[1-9]\d{0,2}(?: \d{3}){2,}(?![\d,.]| \d)")
_DECIMALS = re.compile(r"(?<![\d.,])\d{1,3},(?:\d{1,2}|\d{4,6})(?![\d,.])\s?[KMGB%]")
_OTHERWISE = re.compile(r"\d\.\d|\d,\d{3},\d")


class Token(NamedTuple):
    """A piece of a line.

    `kind` is number, word, operator, open, close, relation or stop (everything else).
    """

    kind: str
    text: str
    start: int
    end: int
    number: Number | None = None


def writes_dots(text: str) -> bool:
    """Return whether a text certainly separates thousands by dots or blanks, decimals by commas."""
    if _WRITES_DOTS.search(text):
        return True
    if _WRITES_BLANKS.search(text) and _DECIMALS.search(text) and not _OTHERWISE.search(text):
        return True
    commas = list(islice(_BEHIND_COMMA.finditer(text), _LEAST_COMMAS))
    named = all(point["name"] for point in _BEHIND_POINT.finditer(text))
    if named and _GERMAN.search(text) and not _IN_COMMAS.search(text):
        return True
    least = 1 if _GROUPS_BY_POINT.search(text) and not _BEHIND_POINT.search(text) else _LEAST_COMMAS
    decimals = len(commas) >= least or _BELOW_ONE.search(text) is not None
    return decimals and named and not _BY_COMMAS.search(text)


_NUMBER = {
    False: re.compile(f"(?P<digits>{_INDIAN}|{_GROUPED}|{_SLIPPED}|{_COMMA}|{_PLAIN}){_POWER}"),
    True: re.compile(rf"(?P<digits>{_DOTTED}|{_COMMAS}|{_BLANKS}|\d+,\d+|{_PLAIN}){_POWER}"),
}


_IS_DOTTED = re.compile(_DOTTED)
_IS_DECIMAL = re.compile(r"\d+,\d{1,2}|0,\d{3}")
_DIGITS = re.compile(r"[1-9]\d*(?:\.\d+)?")
_GROUPS = re.compile(r"[,'’_ ]")


def tokens(line: str, known: Collection[str] = (), *, dots: bool = False) -> list[Token]:
    """Split a line into tokens.

    Args:
        line: plain text without markup.
        known: names of variables that have a value.
        dots: read 50.257 as fifty thousand.

    Raises:
        BadInput: if a number or the nesting of parentheses is too large.
    """
    found: list[Token] = []
    position = depth = 0
    while position < len(line):
        if line[position].isspace():
            position += 1
            continue
        if line[position] in "012" and (match := _NO_NUMBER.match(line, position)):
            found.append(Token("stop", match[0], position, match.end()))
        elif match := _NUMBER[dots].match(line, position):
            _add_number(found, _number(line, match, known, dots=dots))
        elif found and found[-1].kind in ("number", "close", "word") and _TIMES.match(line, position):
            found.append(Token("operator", "*", position, position + 1))
        elif _is_scale_behind(line, position, found, known):
            scale = Number(Fraction(10 ** SCALES[line[position].lower()]))
            found.append(Token("operator", "*", position, position))
            found.append(Token("number", line[position], position, position + 1, scale))
        elif found and found[-1].number is not None and (match := _PER_PARAMETER.match(line, position)):
            found.append(Token("word", "bytes", position, match.end()))
        elif match := _WORD.match(line, position):
            found += _words(line, match, known)
        elif found and found[-1].number is not None and found[-1].end == position and _RANGE.match(line, position):
            found.append(Token("stop", "~", position, position + 1))
        else:
            found.append(_mark(line, position))
            if found[-1].text in ("~", "≈") and len(found) > 1 and _marks(found):
                mark, before = found.pop(), found.pop()  # "× ~7.1M" marks a rounded number, not a relation
                found.append(before._replace(text="≈", end=mark.end) if before.kind == "relation" else before)
                position = mark.end
                continue
        position = found[-1].end
        depth = max(0, depth + (found[-1].kind == "open") - (found[-1].kind == "close"))
        if depth > MOST_NESTED:
            raise too_deep()
    return _with_powers(found) if "10" in line and "^" in line else found


def _with_powers(found: Sequence[Token]) -> list[Token]:
    """Join 6.61 × 10^9 into one number, rounded at its last digit.

    A factor without decimals is exact: "6 × 7 × 10^9" has no rounded seven.
    """
    whole = list[Token]()
    place = 0
    while place < len(found):
        token = found[place]
        before, behind = (found[at].text if 0 <= at < len(found) else "" for at in (place - 1, place + 5))
        alone = before not in _OPERATED and behind not in _OPERATED
        power = _power_behind(found[place : place + 5], alone=alone) if before != "^" else 0
        if power and token.number is not None:
            number = times(token.number, Fraction(10) ** power)
            number = number if alone or token.number.is_decimal else Number(number.value)
            text = "".join(one.text for one in found[place : place + 5])
            token = Token("number", text, token.start, found[place + 4].end, number)
            place += 4
        whole.append(token)
        place += 1
    return whole


def _power_behind(pieces: Sequence[Token], *, alone: bool) -> int:
    """Return the power of ten that a number is multiplied by, or 0: 9 for 6.61 × 10^9.

    Among other factors, 12 × 10^2 is a product.
    """
    first, last = pieces[0].number, pieces[-1].number
    if [piece.text for piece in pieces[1:4]] != ["*", "10", "^"] or first is None or last is None:
        return 0
    power = last.value.numerator if last.unit == 1 and 0 < last.value <= MOST_POWER else 0
    few = first.is_decimal or (first.unit == 1 and first.value <= MOST_FIRST and power >= LEAST_POWER)
    return power if few or (alone and power >= LEAST_POWER) else 0


def _is_scale_behind(line: str, position: int, found: Sequence[Token], known: Collection[str]) -> bool:
    """Return whether a letter behind parentheses is their unit, and no variable: "(16 + 32) M"."""
    if not found or found[-1].kind != "close" or line[position] in known:
        return False
    apart = position - found[-1].end
    return apart <= (line[position] in "KM") and _SCALE_BEHIND.match(line, position) is not None


def _marks(found: Sequence[Token]) -> bool:
    """Return whether the last token, ``~`` or ``≈``, marks the next number as rounded.

    It follows an opening parenthesis, an operator or a relation, or words in parentheses:
    "(remaining ~0.5B is the head)".
    """
    place = len(found) - 2
    if found[place].kind in ("open", "operator", "relation"):
        return True
    while place and found[place].kind == "word":
        place -= 1
    return place < len(found) - 2 and found[place].kind == "open"


def too_deep() -> BadInput:
    """Return the error for nesting beyond `MOST_NESTED`."""
    return BadInput(f"nests parentheses, signs or powers over {MOST_NESTED} deep", code="too-large")


def _number(line: str, match: re.Match[str], known: Collection[str], *, dots: bool) -> Token:
    digits, end = match["digits"], match.end()
    if dots:
        digits = digits.replace(".", "") if _IS_DOTTED.fullmatch(digits) else digits
        digits = digits.replace(",", "" if digits.count(",") > 1 else ".")
    elif _IS_DECIMAL.fullmatch(digits):
        digits = digits.replace(",", ".")
    digits = digits if digits.isdecimal() else _GROUPS.sub("", digits)
    power = int(match["power"][1:]) if match["power"] else 0
    if len(digits) + abs(power) > MOST_DIGITS:
        raise BadInput(f"has a number of over {MOST_DIGITS} digits, too long for a parameter count", code="too-large")
    if digits.isdecimal():  # much faster than parsing a fraction
        number = Number(Fraction(int(digits)))
    else:
        number = Number(Fraction(digits), Fraction(1, 10 ** len(digits.partition(".")[2])))
    if match["power"]:
        divides = digits == "1" and line[: match.start()].rstrip().endswith("/")  # "/ 1e9" converts a unit
        number = Number(Fraction(10) ** power) if divides else times(number, Fraction(10) ** power)
    elif number.value <= MOST_STATES and _PER_PARAMETER.match(line, end):
        pass  # bytes, as the word behind it says
    elif (suffix := _SUFFIX.match(line, end)) and _are_bytes(suffix, number, line[: match.start()], line[end:]):
        end = suffix.end()
    elif suffix and not _is_no_scale(suffix, number, known):
        number, end = times(number, _scale_of(suffix)), suffix.end()
        if suffix["scale"] and (unit := _SUFFIX.match(line, end)) and unit["bytes"]:  # "8M KB"
            number, end = times(number, _scale_of(unit)), unit.end()
    return Token("number", line[match.start() : end], match.start(), end, number)


def _add_number(found: list[Token], number: Token) -> None:
    """Add a number to the tokens before it, joined to the one that it is part of."""
    if joined := _compound(found[-1], number) if found else None:
        found[-1] = joined
    elif len(found) > 1 and found[-1].text == "-" and (joined := _range(found[-2], number)):
        found[-2:] = [joined]
    else:
        found.append(number)


def _compound(one: Token, other: Token) -> Token | None:
    """Join 1億2444万, 1億 2444만 or 2443万9808 into one number; return None for any other pair."""
    first, second = (_MYRIADS.find(token.text[-1]) for token in (one, other))
    if one.number is None or other.number is None or first < 0 or other.start - one.end > 1:
        return None
    both = one.number.value + other.number.value
    if _LAST.fullmatch(other.text) and other.start - one.end <= (one.text[-1] in "만억"):
        number = Number(both)
    elif 0 <= second < first:
        number = Number(both, other.number.unit, rounded=True)
    else:
        return None
    return Token("number", f"{one.text}{other.text}", one.start, other.end, number)


def _range(one: Token, other: Token) -> Token | None:
    """Join a range, "1.0-1.2B" or "18M-20M", into its upper end, as vague as it is wide."""
    low, high, digits = one.number, other.number, _DIGITS.match(other.text)
    if low is None or high is None or digits is None or other.start - one.end != 1 or high.unit < 1 or not high.rounded:
        return None
    least = low.value if low.rounded else low.value * high.value / Fraction(digits[0])
    if not least < high.value <= MOST_RANGE * least:
        return None
    number = high._replace(unit=2 * (high.value - least))
    return Token("number", f"{one.text}-{other.text}", one.start, other.end, number)


def _are_bytes(suffix: re.Match[str], number: Number, before: str, behind: str) -> bool:
    """Return whether B counts bytes: "8320 B ≈ 8 KB", or of a parameter: "× 4 B = 93.8 MB"."""
    if suffix["scale"] == "B" and number.value <= MOST_WIDE:
        said = "byte" in before.lower()  # "4 × 4 bytes × 7B"
        several = before.count("*") >= LEAST_FACTORS and not (said or _LETTERED.search(before))
        wide = (several or _TIMES_LETTERED.search(before)) and _WIDE_BYTES.match(behind)
        return bool(wide or _ALL_BYTES.match(behind) or _ADDED_BYTES.match(behind))
    if suffix["spaced"] != "B":
        return False
    if number.value <= MOST_WIDE and not number.is_decimal and _ALL_BYTES.match(behind.lstrip()):
        return True  # "× 2 B = 354,071,347 B"
    return bool(_ARE_BYTES.match(behind)) or (number.value <= MOST_WIDE and _IN_BYTES.search(behind) is not None)


def _is_no_scale(suffix: re.Match[str], number: Number, known: Collection[str]) -> bool:
    """Return whether the letter is a variable, or the unit of bytes: "548,090,880 B"."""
    variable = (suffix["scale"] or suffix["spaced"]) in known and not (suffix["scale"] and number.value >= LEAST_SCALED)
    return variable or ((suffix["spaced"] or suffix["scale"]) == "B" and number.value >= LEAST_BYTES)


def _scale_of(suffix: re.Match[str]) -> Fraction:
    if suffix["percent"]:
        return Fraction(1, 100)
    if suffix["flops"]:
        return Fraction({**_BYTES, "p": 10**15}[suffix["flops"].lower()])
    if suffix["bytes"]:
        return Fraction(_BYTES[suffix["bytes"].lower().translate(_LATIN)])
    word = suffix["scale"] or suffix["spaced"] or suffix["word"] or suffix["myriad"]
    return Fraction(10 ** SCALES[" ".join(word.lower().split())])


def times(number: Number, scale: Fraction) -> Number:
    """Return a number multiplied by its unit, which rounds it."""
    return Number(number.value * scale, number.unit * scale, rounded=True, pointed=number.is_decimal)


def _words(line: str, match: re.Match[str], known: Collection[str]) -> list[Token]:
    """Return the tokens of a word: GPT-2 is one word; Ld is two variables if both are known."""
    start, end, word = match.start(), match.end(), match[0]
    last = word.rpartition(".")[2]
    if word in known or last in known:  # config.n_embd is n_embd
        return [Token("word", word if word in known else last, start, end)]
    if 1 < len(word) <= 4 and all(letter in known for letter in word):
        return [Token("word", letter, start + place, start + place + 1) for place, letter in enumerate(word)]
    if joined := _HYPHENED.match(line, end):
        end = joined.end()
    return [Token("word", line[start:end], start, end)]


def _mark(line: str, position: int) -> Token:
    for kind, pattern in (("stop", _NO_RELATION), ("stop", _COMMENT), ("relation", _RELATION), ("operator", _OPERATOR)):
        if match := pattern.match(line, position):
            return Token(kind, _OPERATORS.get(match[0], match[0]), position, match.end())
    character = line[position]
    kind = "open" if character in "([{" else "close" if character in ")]}" else "stop"
    return Token(kind, character, position, position + 1)
