"""Parse a line into tokens and expression trees: recursive descent of bounded depth.

The input has no markup (``markup`` removes it). Words may follow a number ("12 layers × 768
dims") or fill parentheses ("768 (width)"). The caller passes the names of the known variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.derivations.arithmetic import SCALES, Expression, Name, Number, Operation
from tallystick.errors import BadInput

MOST_NESTED = 100  # levels of nested parentheses, signs and powers
MOST_DIGITS = 280  # a unit after it multiplies it, and a float holds 308 digits
MOST_WORDS = 5  # between a number and the next operator
MOST_TOKENS = 2000  # per side of an equation
MOST_LOOKED_AT = 40  # tokens inside parentheses that only comment

_BYTES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_DOTTED = r"[1-9]\d{0,2}(?:\.\d{3})+(?![\d.]{0,20}\d)(?:,\d+)?"  # 50.257, if the text groups by dots
_GROUPED = r"\d{1,3}(?:(?:,\d{3})+|(?:['’]\d{3})+|(?:_\d{3})+|(?: \d{3})+)(?![\d_])(?:\.\d+)?"
_COMMA = r"\d+,\d{1,3}(?=\s?(?:[KMBTG%](?!\w)|(?i:mill?i|mil[hjy]|bil[hl]|mio|mrd|juta|тыс|млн|млрд)))"  # 38,6M
_PLAIN = r"\d+(?:\.\d+)?|\.\d+"
_POWER = r"(?P<power>[eE][+-]?\d{1,4}(?!\w|\.\d))?"
_SUFFIX = re.compile(
    r"(?P<scale>[KkMmBbTG]|mn|bn)(?![0-9A-Za-z_\u00c0-\u04ff])|\s(?P<spaced>[KMBG])(?!\w)|\s?(?P<flops>[KMGTP])(?=(?:FLOP|MAC|OP)s?)"
    r"|\s{0,3}(?P<word>(?i:thousand|million(?:en)?|billion|trillion|mio|mrd|milliarden?|milliard|millones|millón|milion[ei]|miliard[io]|milyon|milyar|juta|miliar|[mb]ilhões|[mb]ilhão|тыс|млн|млрд|миллион(?=а|ов|\b)|миллиард(?=а|ов|\b)))(?:s|а|ов)?(?!\w)(?:\.(?=\s*(?:[-+*/=≈);]|$)))?"
    r"|\s?(?P<myriad>[万萬만亿億억兆조])"
    r"|\s?(?P<bytes>[KkMGT]i?)B(?!\w)|\s?(?P<percent>%)"
)
# 约等于110M: in scripts without blanks a number begins at its first digit
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?=\d)|\\?[^\W\d]\w*(?:[.'’][^\W\d]\w*)*")
_HYPHENED = re.compile(r"(?:[-/][^\W_]\w*)+")
_TIMES = re.compile(r"[xX](?=\s*[\d(\[{]|\s+\w)")
_NO_RELATION = re.compile(r"={3,}|[!<>]=|[=-]+>|<[=-]+|[≠≤≥<>]")
_RELATION = re.compile(r"[:=]?=|≈|~=?")
_OPERATOR = re.compile(r"\*\*|//|[-+*/^]")
_MYRIADS = "万萬만亿億억兆조"  # in ascending order
_OPERATORS = {"**": "^", "//": "/"}

# Two dots in a number group thousands: a text with 38.597.376 also writes 50.257.
_WRITES_DOTS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:\.\d{3}){2,}(?![\d.])")

# Units that may follow a number without changing its value.
_UNIT = re.compile(
    r"(?:per[-_]?)?(?:layers?|blocks?|param\w*|weights?|bias(?:es)?|heads?|tokens?|experts?|dims?|dimensions?|elements?|entries"
    r"|values?|floats?|numbers?|each|in|total|positions?|words?|vectors?|matri\w+|projections?|rows?|col(?:umn)?s?|copies"
    r"|modules?|neurons?|bytes?|[kmgt]?i?b|\w*flops?|macs?|targets?|norms?"
    r"|schicht\w*|blöcke|bl[oö]ck\w*|gewicht\w*|couches?|blocs?|poids|capas?|bloques?|blocos?|camadas?|pesos?|octets?|[kmgt]o"
    r"|parám\w*|parâm\w*|param\w*|сло\w+|блок\w*|параметр\w*|байт\w*|[^\x00-\u2fff]{1,6})",
    re.IGNORECASE,
)
# Words that a product of sizes may follow: "3 matrices d × 4d".
_MATRICES = re.compile(r"matri\w+|weights?|projections?|матриц\w*|行列|矩阵|행렬", re.IGNORECASE)
_COUNTED = {
    "bytes": re.compile(
        r"(?<![^\W\d_])(?:[KMGT]i?B|[KMGT]o|bytes?|octets?|байт\w*|[КМГ]Б)(?![^\W_])|字节|バイト|바이트", re.IGNORECASE
    ),
    "operations": re.compile(r"FLOP|MACs?\b|\bops\b", re.IGNORECASE),
    "parameters": re.compile(
        r"\b(?:param|parâm|parám|weights?\b|floats?\b|gewichte|poids|pesos|параметр)|参数|參數|パラメータ|파라미터",
        re.IGNORECASE,
    ),
}

_ARROWS = frozenset(["->", "=>", "-->", "→"])
# Signs and names of functions, which have no value here: √128, sqrt(3072), log2(50257).
_FUNCTIONS = frozenset(
    ["√", "∛", "sqrt", "\\sqrt", "log", "log2", "log10", "ln", "exp", "floor", "ceil", "round", "min", "max", "mod", "softmax"]
)

_JOINS = frozenset(
    [
        "and",
        "or",
        "but",
        "with",
        "where",
        "while",
        "so",
        "then",
        "thus",
        "hence",
        "therefore",
        "for",
        "let",
        "if",
        "given",
        "each",
        "per",
        "which",
        "since",
        "that",
        "equals",
    ]
)


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
    """Return whether a text certainly separates thousands by dots."""
    return _WRITES_DOTS.search(text) is not None


# -- tokens ---------------------------------------------------------------------------------------

_NUMBER = {
    False: re.compile(f"(?P<digits>{_GROUPED}|{_COMMA}|{_PLAIN}){_POWER}"),
    True: re.compile(rf"(?P<digits>{_DOTTED}|\d+,\d+|{_PLAIN}){_POWER}"),
}


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
        if match := _NUMBER[dots].match(line, position):
            number = _number(line, match, known, dots=dots)
            joined = _compound(found[-1], number) if found else None
            found[-1:] = [joined] if joined else [*found[-1:], number]
        elif found and found[-1].kind in ("number", "close", "word") and _TIMES.match(line, position):
            found.append(Token("operator", "*", position, position + 1))
        elif match := _WORD.match(line, position):
            found += _words(line, match, known)
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
            raise _too_deep()
    return found


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


def _too_deep() -> BadInput:
    return BadInput(f"parentheses, signs or powers more than {MOST_NESTED} deep", code="too-large")


def _number(line: str, match: re.Match[str], known: Collection[str], *, dots: bool) -> Token:
    digits, end = match["digits"], match.end()
    if dots:
        digits = digits.replace(".", "") if re.fullmatch(_DOTTED, digits) else digits
        digits = digits.replace(",", ".")
    elif re.fullmatch(r"\d+,\d{1,2}", digits):
        digits = digits.replace(",", ".")
    digits = re.sub(r"[,'’_ ]", "", digits)
    power = int(match["power"][1:]) if match["power"] else 0
    if len(digits) + abs(power) > MOST_DIGITS:
        raise BadInput(f"a number of more than {MOST_DIGITS} digits: no count of parameters", code="too-large")
    number = Number(Fraction(digits), Fraction(1, 10 ** len(digits.partition(".")[2])))
    if match["power"]:
        number = _times(number, Fraction(10) ** power)
    elif (suffix := _SUFFIX.match(line, end)) and not _is_no_scale(suffix, number, known):
        number, end = _times(number, _scale_of(suffix)), suffix.end()
    return Token("number", line[match.start() : end], match.start(), end, number)


def _compound(one: Token, other: Token) -> Token | None:
    """Join 1億2444万 or 1億 2444만 into one number; return None for any other pair."""
    first, second = (_MYRIADS.find(token.text[-1]) for token in (one, other))
    if one.number is None or other.number is None or not 0 <= second < first or other.start - one.end > 1:
        return None
    number = Number(one.number.value + other.number.value, other.number.unit, rounded=True)
    return Token("number", f"{one.text}{other.text}", one.start, other.end, number)


def _is_no_scale(suffix: re.Match[str], number: Number, known: Collection[str]) -> bool:
    """Return whether the letter is a variable, or the unit of bytes: "548,090,880 B"."""
    return (suffix["scale"] or suffix["spaced"]) in known or (
        suffix["spaced"] == "B" and number.value >= _BYTES["k"] ** 2
    )


def _scale_of(suffix: re.Match[str]) -> Fraction:
    if suffix["percent"]:
        return Fraction(1, 100)
    if suffix["flops"]:
        return Fraction({**_BYTES, "p": 10**15}[suffix["flops"].lower()])
    if suffix["bytes"]:
        return Fraction(_BYTES[suffix["bytes"].lower()])
    return Fraction(10 ** SCALES[(suffix["scale"] or suffix["spaced"] or suffix["word"] or suffix["myriad"]).lower()])


def _times(number: Number, scale: Fraction) -> Number:
    return Number(number.value * scale, number.unit * scale, rounded=True)


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
    for kind, pattern in (("stop", _NO_RELATION), ("relation", _RELATION), ("operator", _OPERATOR)):
        if match := pattern.match(line, position):
            return Token(kind, _OPERATORS.get(match[0], match[0]), position, match.end())
    character = line[position]
    kind = "open" if character in "([{" else "close" if character in ")]}" else "stop"
    return Token(kind, character, position, position + 1)


# -- trees ----------------------------------------------------------------------------------------


def prefix(pieces: Sequence[Token], known: Collection[str]) -> tuple[Expression, int] | None:
    """Return the longest expression at the start of `pieces`, and its number of tokens.

    Return None if there is none, or if an operator joins it to something without a value.
    """
    reader = _Reader(pieces[:MOST_TOKENS], known)
    expression = reader.sum()
    end = reader.position
    if expression is None or end == MOST_TOKENS:
        return None
    if end < len(pieces) and pieces[end].kind == "operator":
        remark = pieces[end].text == "-" or end + 1 == len(pieces)  # "= 768 - the width"; a footnote's asterisk
        if not remark or (end + 1 < len(pieces) and is_variable(pieces[end + 1])):
            return None
    return expression, end


def suffix(pieces: Sequence[Token], known: Collection[str]) -> tuple[Expression, int] | None:
    """Return the longest expression at the end of `pieces` and its start index, or None."""
    end = len(pieces)
    while end and pieces[end - 1].kind == "open":  # "768 (= 12 × 64)"
        end -= 1
    reader = _Reader(pieces[:end], known)
    start = max(0, end - MOST_TOKENS)
    while start < end:
        reader.position = start
        expression = reader.sum() if _can_start(pieces, start, known) else None
        if expression is not None and reader.position == end:
            return expression, start
        # An expression that starts inside the one just read ends at the same token, or at an
        # earlier closing parenthesis.
        start = max(start + 1, reader.position)
    return None


def computes(pieces: Sequence[Token]) -> bool:
    """Return whether the tokens hold a number and an operator, parseable or not."""
    kinds = {piece.kind for piece in pieces}
    return "number" in kinds and "operator" in kinds


def is_variable(token: Token) -> bool:
    """Return whether a word looks like a name in a formula: d, L, n_embd, W1."""
    return token.kind == "word" and (len(token.text) == 1 or not token.text.isalpha()) and "-" not in token.text


def is_unit(token: Token) -> bool:
    """Return whether a word can follow a number as its unit: parameters, layers."""
    word = token.text.replace("-", "").removeprefix("per")  # "7,087,872 per-block"
    long = len(word) > 2 or word > "\u2fff"  # 個, 层
    return token.kind == "word" and long and word.isalpha() and word.lower() not in _JOINS


def is_sure(pieces: Sequence[Token], start: int, end: int, known: Collection[str]) -> bool:
    """Return whether `pieces[start:end]` is certainly the whole expression.

    No operator or function precedes it, and its only words are known names, units and labels. A label precedes
    an addend ("+ final norm 1,536"), a unit follows a number ("12 layers"). Remarks in parentheses
    are ignored.
    """
    if end - start == 1 and not start:
        return True
    if start > 1 and pieces[start - 1].text in _ARROWS and pieces[start - 2].number is not None:
        return False  # "128 -> 32 = 128 × 32"
    before = start
    while before and pieces[before - 1].kind == "word" and start - before < MOST_WORDS:
        before -= 1
    if before and before < start and pieces[before - 1].kind == "operator":
        return False
    if start and pieces[start - 1].text.rpartition(".")[2].lower() in _FUNCTIONS:
        return False
    if before and before < start and pieces[before - 1].kind == "number" and _MATRICES.fullmatch(pieces[before].text):
        return False  # "3 matrices d × 4d" may be all three
    depth = 0
    for place in range(start, end):
        piece = pieces[place]
        depth += (piece.kind == "open") - (piece.kind == "close")
        if piece.kind != "word" or piece.text in known or depth:
            continue
        if not (_UNIT.fullmatch(piece.text) or _is_label(pieces, place, start)):
            return False
    return True


def goes_on(pieces: Sequence[Token], end: int) -> bool:
    """Return whether unknown words separate an expression from an operator: "4 Q/K heads × 256"."""
    place = end
    while place < len(pieces) and pieces[place].kind == "word" and place - end < MOST_WORDS:
        place += 1
    behind = pieces[place : place + 2]
    return place > end and len(behind) > 1 and behind[0].text in "+*/" and behind[1].kind in ("number", "open")


def _is_label(pieces: Sequence[Token], place: int, start: int) -> bool:
    """Return whether a word is between a number and a preceding sign, or at the start."""
    while place > start and pieces[place].kind == "word":
        place -= 1
    return pieces[place].text in "+-" or (place == start and pieces[start].kind == "word")


def unit_of(pieces: Sequence[Token]) -> str:
    """Return what the last number of an expression counts, according to the words after it.

    The result is "parameters", "bytes", "operations" or "".
    """
    if len(pieces) == 1 and pieces[0].text[-1:].isdigit():
        return ""
    last = max((place for place, piece in enumerate(pieces) if piece.number is not None), default=None)
    if last is None:
        return ""
    text = " ".join(
        [pieces[last].text.lstrip("0123456789.,_ "), *(piece.text for piece in pieces[last + 1 : last + 3])]
    )
    return next((unit for unit, pattern in _COUNTED.items() if pattern.search(text)), "")


def _can_start(pieces: Sequence[Token], start: int, known: Collection[str]) -> bool:
    token, before = pieces[start], pieces[start - 1] if start else None
    if before is not None and before.kind == "operator":
        # A dash between a label and its numbers is not a minus: "Embedding - 50257 × 768".
        label = start > 1 and pieces[start - 2].kind == "word" and not is_variable(pieces[start - 2])
        return token.kind in ("number", "open") and before.text == "-" and label
    if token.kind == "operator":
        return token.text in "+-" and (before is None or before.kind == "stop")
    return token.kind in ("number", "open") or (token.kind == "word" and token.text in known)


class _Reader:
    """A recursive-descent parse of some tokens.

    Each method consumes what it can parse, or restores the position and returns None.
    """

    def __init__(self, pieces: Sequence[Token], known: Collection[str]) -> None:
        self.pieces = pieces
        self.known = known
        self.position = 0
        self.depth = 0
        self.unclosed: set[int] = set()  # positions of parentheses without an expression, tried once each

    def sum(self) -> Expression | None:
        return self._chain(lambda: self._operator("+-"), self.product)

    def product(self) -> Expression | None:
        return self._chain(lambda: self._operator("*/") or self._implied(), self.signed)

    def signed(self) -> Expression | None:
        mark = self.position
        sign = self._operator("+-")
        if sign is None:
            return self.power()
        part = self._nested(self.signed)
        if part is None:
            self.position = mark
            return None
        return Operation(("-",), (Number(Fraction(0)), part)) if sign == "-" else part

    def power(self) -> Expression | None:
        base = self.atom()
        mark = self.position
        if base is None or self._operator("^") is None:
            return base
        exponent = self._nested(self.signed)
        if exponent is None:
            self.position = mark
            return base
        self._skip_remarks()
        return Operation(("^",), (base, exponent))

    def atom(self) -> Expression | None:
        token = self._next()
        if token is None:
            return None
        mark = self.position
        inner: Expression | None = None
        if token.kind == "open":
            if mark in self.unclosed:
                return None
            self.position += 1
            inner = self._nested(self.sum)
            close = self._next()
            if inner is None or close is None or close.kind != "close":
                self.position = mark
                self.unclosed.add(mark)
                return None
        elif token.number is not None:
            inner = token.number
        elif token.kind == "word" and token.text in self.known:
            inner = Name(token.text)
        else:
            return None
        self.position += 1
        self._skip_remarks()
        return inner

    # -- steps ------------------------------------------------------------------------------------

    def _next(self) -> Token | None:
        return self.pieces[self.position] if self.position < len(self.pieces) else None

    def _operator(self, symbols: str) -> str | None:
        token = self._next()
        if token is None or token.kind != "operator" or token.text not in symbols:
            return None
        self.position += 1
        return token.text

    def _implied(self) -> str | None:
        """Return the implied operator before a variable or parentheses, as in 12d² or 2(3 + 4).

        With a space before the parentheses it is ``(`` or ``(+``: perhaps only a comment.
        """
        token = self._next()
        if token is None or (token.kind == "word" and token.text not in self.known):
            return None
        if token.kind == "word":
            return "*"
        if token.kind != "open":
            return None
        before = self.pieces[self.position - 1]
        scaled = before.number is not None and before.number.rounded  # "38.6M(38,597,376)" states one number twice
        if (
            token.start > before.end
            and (sign := self.pieces[self.position + 1 : self.position + 2])
            and sign[0].text == "+"
        ):
            return "(+"
        return "*" if token.start == before.end and not scaled else "("

    def _chain(self, symbol: Callable[[], str | None], part: Callable[[], Expression | None]) -> Expression | None:
        first = part()
        if first is None:
            return None
        symbols: list[str] = []
        parts: list[Expression] = [first]
        while True:
            mark = self.position
            joint = symbol()
            if joint and joint in "+-*/" and (joint != "-" or self._is_apart(self.position)):
                self._skip_label(counted=joint in "+-")
            following = part() if joint else None
            if joint is None or following is None:
                self.position = mark
                if joint and self._skip_parentheses(words_only=False):  # "768 (see table 2)"
                    continue
                return Operation(tuple(symbols), tuple(parts)) if symbols else parts[0]
            if joint == "*" and (scientific := _scientific(parts[-1], following)):
                parts[-1] = scientific
            else:
                symbols.append(joint)
                parts.append(following)

    def _nested(self, part: Callable[[], Expression | None]) -> Expression | None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise _too_deep()
        inner = part()
        self.depth -= 1
        return inner

    def _skip_label(self, *, counted: bool) -> None:
        """Skip the words before a number: "+ final norm 1,536".

        With `counted`, also skip a count before the words: "+ 2 experts 352.3M".
        """
        place = self.position
        if counted and self._is(place, "number") and self._is(place + 1, "word"):
            place += 1
        first = place
        while place - first < MOST_WORDS and self._is(place, "word") and self.pieces[place].text not in self.known:
            place += 1
        named = any(len(piece.text) > 1 for piece in self.pieces[first:place])
        if named and self._is(place, "open") and (end := self._remark(place)):
            place = end  # "+ position embeddings (wpe) 786,432"
        if (named and self._is(place, "number")) or (counted and place == first + 1 and self._is(place, "open")):
            self.position = place  # in "A(16 × 4096) + B(4096 × 16)" each letter is a label too

    def _remark(self, place: int) -> int | None:
        """Return the end of a parenthesised remark that a number follows.

        Return None without such a remark, or if it contains a number.
        """
        end = place + 1
        while end - place < MOST_LOOKED_AT and self._is(end, "word") and self.pieces[end].text not in self.known:
            end += 1
        return end + 1 if self._is(end, "close") and self._is(end + 1, "number") else None

    def _is_apart(self, place: int) -> bool:
        """Return whether a blank separates a token from the one before: "0.6B-Base" is a name."""
        return place < len(self.pieces) and self.pieces[place].start > self.pieces[place - 1].end

    def _is(self, place: int, kind: str) -> bool:
        return place < len(self.pieces) and self.pieces[place].kind == kind

    def _skip_remarks(self) -> None:
        """Skip units and parenthesised words if the expression can continue or end after them."""
        mark, words = self.position, 0
        while (token := self._next()) is not None:
            unit = (
                is_unit(token)
                or token.text == "each"
                or (token.text == "per" and self._is(self.position + 1, "word"))
                or self._is_kind()
            )
            if token.kind == "word" and token.text not in self.known and unit and words < MOST_WORDS:
                words += 1
                self.position += 1
            elif not self._skip_parentheses():
                break
        if token is not None and token.kind not in ("operator", "close"):
            self.position = mark

    def _is_kind(self) -> bool:
        """Return whether capitals qualify the unit that follows: "4 KV heads × 256"."""
        kind, *unit = self.pieces[self.position : self.position + 2]
        return kind.text.isupper() and bool(unit) and is_unit(unit[0])

    def _skip_parentheses(self, *, words_only: bool = True) -> bool:
        """Skip parentheses that only comment; return whether any were skipped."""
        token = self._next()
        if token is None or token.kind != "open":
            return False
        depth = 0
        for place in range(self.position, min(self.position + MOST_LOOKED_AT, len(self.pieces))):
            token = self.pieces[place]
            depth += (token.kind == "open") - (token.kind == "close")
            if words_only and (token.kind == "number" or token.text in self.known):
                return False
            if depth == 0:
                self.position = place + 1
                return True
        return False


def _scientific(left: Expression, right: Expression) -> Number | None:
    """Return 1.5 × 10^9 as one number, rounded at its last digit, or None."""
    if isinstance(left, Number) and left.unit <= 1 and isinstance(right, Operation) and right.symbols == ("^",):
        base, exponent = right.parts
        if left.unit == 1 and (left.value > 10 or not isinstance(exponent, Number) or exponent.value < 3):
            return None  # 12 × 10²
        if isinstance(base, Number) and base.value == 10 and isinstance(exponent, Number) and exponent.unit == 1:
            if exponent.value > MOST_DIGITS:
                raise BadInput(f"a number of more than {MOST_DIGITS} digits: no count of parameters", code="too-large")
            return _times(left, Fraction(10) ** int(exponent.value))
    return None
