"""Parse tokens into expression trees: recursive descent of bounded depth.

Words may follow a number ("12 layers × 768 dims") or fill parentheses ("768 (width)"). The caller
passes the names of the known variables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, is_sum
from tallystick.derivations.expressions.phrases import MOST_WORDS_BETWEEN, is_count, is_unit, is_variable
from tallystick.derivations.expressions.tokens import MOST_NESTED, Token, too_deep
from tallystick.derivations.expressions.words import JOINS

MOST_TOKENS = 2000  # per side of an equation
LONGEST_KIND = 3  # letters of what qualifies a unit: KV
_KINDS = frozenset({"kv", "q"})  # the same in small letters
_PROJECTIONS = frozenset("QKVO")  # letters that label an addend: "+ O 8192 × 4096"
_BEGINS = JOINS - {"and", "with", "for", "each", "per"}  # words that begin a clause, and label no addend
LEAST_COUNTED = 1000  # "2,360,064 /layer" counts; 12 / heads divides
COLUMN = 2  # blanks before a name that a number does not multiply
WIDE = 3  # blanks that end a column
MOST_LOOKED_AT = 40  # tokens inside parentheses that only comment


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


def _can_start(pieces: Sequence[Token], start: int, known: Collection[str]) -> bool:
    token, before = pieces[start], pieces[start - 1] if start else None
    if before is not None and before.kind == "operator":
        # A dash between a label and its numbers is not a minus: "Embedding - 50257 × 768".
        label = start > 1 and pieces[start - 2].kind == "word" and not is_variable(pieces[start - 2])
        label = label and not pieces[start - 2].end < before.start < before.end == token.start  # "w is -2 + 8"
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
        self.end = len(pieces)
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
            named = self._skip_first_label(mark)
            inner = self._nested(self.sum)
            close = self._next()
            if inner is None or close is None or close.kind != "close" or (named and not is_sum(inner)):
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
        return self.pieces[self.position] if self.position < self.end else None

    def _operator(self, symbols: str) -> str | None:
        if self.position == self.end:
            return None
        token = self.pieces[self.position]
        if token.kind != "operator" or token.text not in symbols:
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
        before = self.pieces[self.position - 1]
        if token.kind == "word":
            behind = self.pieces[self.position + 1 : self.position + 2]
            remark = token.start - before.end >= COLUMN and (not behind or behind[0].kind == "open")
            remark = remark or (before.number is not None and before.number.rounded and is_unit(token))  # "352B FLOPs"
            return None if remark else "*"  # "C = 384  n_embd (width)" names its size
        if token.kind != "open":
            return None
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
            symbols.append(joint)
            parts.append(following)

    def _nested(self, part: Callable[[], Expression | None]) -> Expression | None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise too_deep()
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
        first, place = place, self._behind_words(place)
        named = any(len(piece.text) > 1 or piece.text in _PROJECTIONS for piece in self.pieces[first:place])
        if self._is(first, "word") and self.pieces[first].text in _BEGINS:
            return  # "6.5 - so the last has 1": a dash before a clause
        if (named or place == self.position) and self._is(place, "open") and (end := self._remark(place)):
            self.position = end  # "+ position embeddings (wpe) 786,432", "+ (ffn) 160 × 640"
        elif (named and (self._is(place, "number") or self._is_closed(place))) or (
            counted and place == first + 1 and self._is(place, "open")
        ):
            self.position = place  # in "A(16 × 4096) + B(4096 × 16)" each letter is a label too

    def _skip_first_label(self, opened: int) -> bool:
        """Skip the words before the first addend in parentheses that are a factor.

        Example: "2 × (gamma 128 + beta 128)". Return whether there are any.
        """
        if opened and self.pieces[opened - 1].text != "*":
            return False  # "12 (layers 3 + 9)" may only comment
        place = self._behind_words(self.position)
        named = place > self.position and self._is(place, "number")
        self.position = place if named else self.position
        return named

    def _behind_words(self, first: int) -> int:
        """Return the place behind the words of a label, which are no known names."""
        place = first
        while (
            place - first < MOST_WORDS_BETWEEN and self._is(place, "word") and self.pieces[place].text not in self.known
        ):
            place += 1
        return place

    def _remark(self, place: int) -> int | None:
        """Return the end of a parenthesised remark that a number or a sum follows.

        Return None without such a remark, or if it contains a number.
        """
        end = place + 1
        while end - place < MOST_LOOKED_AT and self._is(end, "word") and self.pieces[end].text not in self.known:
            end += 1
        words = end > place + 1 and self._is(end, "close")
        return end + 1 if words and (self._is(end + 1, "number") or self._is(end + 1, "open")) else None

    def _is_closed(self, place: int) -> bool:
        """Return whether a number stands alone in parentheses: "+ final norm (1,536)"."""
        return all(self._is(place + more, kind) for more, kind in enumerate(("open", "number", "close")))

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
                or (words and token.text.isupper() and len(token.text) <= LONGEST_KIND)  # "8 têtes KV × 128"
                or ("_" in token.text and self._is(self.position - 1, "number"))  # "8 kv_heads * 128 head_dim"
            )
            if self.position and token.start - self.pieces[self.position - 1].end >= WIDE:
                break  # the next column
            if token.kind == "word" and token.text not in self.known and unit and words < MOST_WORDS_BETWEEN:
                words += 1
                self.position += 1
            elif (words or self._is_large()) and token.text == "/" and self._is_new_unit(self.position + 1):
                self.position += 2  # "16,777,216 parameters / matrix", "59 MB/layer"
            elif not (self._skip_parentheses() or (words and self._skip_count())):
                break
        if token is not None and token.kind not in ("operator", "close"):
            self.position = mark

    def _is_new_unit(self, place: int) -> bool:
        """Return whether a token is a unit, and no variable."""
        return self._is(place, "word") and self.pieces[place].text not in self.known and is_unit(self.pieces[place])

    def _is_large(self) -> bool:
        """Return whether the last token is a number with its unit, "59 MB", or a large one."""
        number = self.pieces[self.position - 1].number
        return number is not None and (number.rounded or number.value >= LEAST_COUNTED)

    def _is_kind(self) -> bool:
        """Return whether letters qualify the unit that follows: "4 KV heads × 256"."""
        kind, *unit = self.pieces[self.position : self.position + 2]
        return (kind.text.isupper() or kind.text in _KINDS) and bool(unit) and is_unit(unit[0])

    def _skip_count(self) -> bool:
        """Skip another count of a factor if it is there: "64 heads (8 groups) × 128"."""
        end = self.position + 2
        while end - self.position < MOST_WORDS_BETWEEN and self._is(end, "word"):
            end += 1
        counts = self._is(end - 1, "word") and is_count(self.pieces[self.position + 1].number)
        times = self._is(end, "close") and self._is(end + 1, "operator") and self.pieces[end + 1].text == "*"
        if not (counts and times and self._is(self.position, "open")):
            return False
        self.position = end + 1
        return True

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
            if token.kind == self.pieces[place - 1].kind == "number":
                return False  # "6 (3 5 5 + 1)" has lost its signs
            if depth == 0:
                powers = self._is(place + 1, "operator") and self.pieces[place + 1].text == "^"
                self.position = self.position if powers else place + 1
                return not powers  # "3(pi/L)^2" comments on nothing
        return False
