"""Read the chains "label: a = b ≈ c" of a line.

Around each ``=`` or ``≈`` the longest arithmetic is parsed, and the words before it become its
label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, divides, is_sum
from tallystick.derivations.expressions.parser import prefix, suffix
from tallystick.derivations.expressions.phrases import (
    MOST_COUNTED,
    computes,
    counted_each,
    end_of,
    goes_on,
    is_added_to,
    is_count,
    is_sure,
    is_variable,
)
from tallystick.derivations.expressions.tokens import Token
from tallystick.derivations.expressions.units import unit_of
from tallystick.derivations.expressions.words import ABOUT
from tallystick.derivations.reading import LEAST_SUM, MOST_SHOWN, Reading
from tallystick.derivations.rewrites import (
    factor_around,
    in_plain_order,
    with_shapes,
    with_sizes,
    without_about,
    without_settings,
)
from tallystick.derivations.statements import TOTAL, Side
from tallystick.derivations.text.lines import Line

MOST_NAMED = 3  # words that name an addend
_NAME = re.compile(r"[a-z][A-Z]|\w_\w")
_TOTAL_BEHIND = re.compile(
    r"[\s*_$)]*(?:[^\W\d_]{5,12}\s+)?(?:(?:in|au|en|no)\s+)?(?:totale?|(?:ins)?gesamt|altogether|overall)\b"
    r"(?!\s+(?:per|pro|par|por|each|for|of|in)\b)",
    re.IGNORECASE,
)
_CALLED = re.compile(r"\w[(（](?:\s*\w+\s*=\s*[^,()=]+,)*\s*$")
_SENTENCE = re.compile(r"[.;,。；，](?:\s|$)|[。；，→]|\s{3,}")
# Sentences before the last one: "for all 24 layers. In total the model has"
_SENTENCES = re.compile(r".*[\w)]\.\s+(?=[A-Z][a-z]+\s[^.:=≈]*$)", re.DOTALL)
# Behind the last number of "~148.9K per layer, ~1.19M for all 8 layers"
_FOR_ALL = re.compile(r"\s*(?:for|across|in|over|with)\s+((?:all|the)\b[^.,;:=≈~]{1,40})")
LETTER = re.compile(r"[^\W\d]")
_LISTED = re.compile(r"[^()=≈]+[=≈]\s*[\d.,]+\s?[KMB]?,\s")  # "One layer ≈ 7.1M, 12 layers ≈ 85.2M"


class Chains(Reading):
    """Reads the equations of a line, each with its label."""

    def _chains(self, line: Line, text: str, label: str = "") -> bool:
        """Read every "a = b = c" of a line, and return whether there is any.

        Each piece between two relations ends a chain, begins one, or is a link of it.
        """
        pieces = self._outer(line, text, label) if "(" in text or "[" in text else self._tokens(text)  # much faster
        pieces = in_plain_order(pieces, text)
        cuts = [place for place, piece in enumerate(pieces) if piece.kind == "relation"]
        if not cuts:
            return False
        begin, end, missed = self._begin(line, text, pieces[: cuts[0]], label), 0, False
        for cut, following in zip(cuts, [*cuts[1:], len(pieces)], strict=True):
            about = following > cut + 2 and pieces[cut + 1].text.lower() in ABOUT  # "= about 38.6M"
            loose = about or pieces[cut].text in ("≈", "~", "~=")
            segment = pieces[cut + 1 + about : following]
            setting = following < len(pieces) and (_is_setting(segment, pieces[following]) or begin.again(segment))
            found, plus = self._first(segment[: len(segment) - setting], last=following == len(pieces))
            late = suffix(segment, self.known) if found is None and following < len(pieces) else None
            # "x = nn.Embedding(a, b) # 50257 * 768 = 38,597,376"
            if late is not None and isinstance(late[0], Operation):
                self._end(line, text, begin, end)
                begin = self._begin(line, text, segment, _named(begin, late[0]) or label)
                continue
            if found is not None:
                sure = not missed and pieces[cut].text != "=="  # code compares; it computes nothing
                # "6 × 3.2M = 20.2M + words" states its product; "124M = 85M + words" lacks a term.
                sure = sure and not (plus and not any(isinstance(one.expression, Operation) for one in begin.sides))
                side = self._side(segment, *found, loose=loose, sure=sure, last=following == len(pieces))
                read = segment[: found[1]]
                begin = self._linked(line, text[begin.start : pieces[cut].start], begin, side, read)
            elif computes(segment):
                self._miss(line)
                begin = self._cut(line, text, begin, end, segment if following < len(pieces) else ())
            # "a × b = 59 MB/layer = 4.1 GB": the next side may be of another quantity
            missed = found is None and (missed or computes(segment)) and not (_is_formula(segment) and not begin.sides)
            if found is not None:
                end = segment[found[1] - 1].end
                if begin.argument:
                    begin.sides.clear()
            more = found[0] if found is not None else None
            if isinstance(more, Operation) and more.symbols[-1] == "(+":  # "= 589,824 (+768 biases) = 590,592"
                begin.sides[-1:] = [begin.sides[-1]._replace(expression=_without_last(more))]
                if following < len(pieces):
                    self._end(line, text, begin, end)
                    begin = _Beginning(begin.label, "", [Side(more)], segment[0].start)
                    continue
            if found is not None and found[1] == plus:  # "≈ 85M + embeddings ≈ 110M" is not 85M
                self._end(line, text, begin, end)
                words = text[segment[plus].end : segment[-1].end]
                begin = _Beginning(words, "", [], segment[plus].start, goes_on=begin.label or " ")
                continue
            if following == len(pieces) or not (setting or (found is not None and not _ends_sum(segment, *found))):
                continue
            self._end(line, text, begin, end)
            begin = self._begin(line, text, segment[-1:] if found is None else segment[found[1] :], label)
        self._end(line, text, begin.called(text, end), end)
        return True

    def _side(
        self, segment: Sequence[Token], expression: Expression, end: int, *, loose: bool, sure: bool, last: bool
    ) -> Side:
        """Return the side that a segment begins with, up to `end`.

        It is `sure` if that is certainly all of it.
        """
        read = segment[:end]
        within = numbers_end(read) if last else end
        within = end_of(expression, read) if within > 1 and isinstance(expression, Number) else within
        sure = sure and not (goes_on(segment, end) or is_added_to(segment, within))
        sure = sure and is_sure(segment, 0, within, self.known)
        return Side(expression, loose, sure, unit_of(_with_unit(segment, end)))

    def _outer(self, line: Line, text: str, label: str) -> Sequence[Token]:
        """Return the tokens of a text without settings, and without the equation in a factor.

        That equation, as in "4096 × (8 × 128 = 1024)", is read apart.
        """
        pieces = without_about(without_settings(self._tokens(text)))
        if "_" in text:
            pieces = with_sizes(pieces)
        if "[" in text or "→" in text or "->" in text:
            pieces = with_shapes(pieces)
        cut = next((place for place, piece in enumerate(pieces) if piece.kind == "relation"), 0)
        start, end = factor_around(pieces, cut)
        if not end:
            return pieces
        self._chains(line, text[pieces[start + 1].start : pieces[end].start], label)
        return [*pieces[:cut], *pieces[end:]]

    def _cut(self, line: Line, text: str, begin: _Beginning, end: int, unread: Sequence[Token]) -> _Beginning:
        """Return the chain behind what was not read: a new one if that ends in a name of code.

        Example: "131,072 bytes = 128 KB/tokenpeak = 6144 × 131,072", whose line breaks are lost.
        """
        if not (unread and self._is_name(unread[-1])):
            return begin
        self._end(line, text, begin, end)
        return _Beginning(unread[-1].text, "", [], unread[-1].end)

    def _first(self, segment: Sequence[Token], *, last: bool) -> tuple[tuple[Expression, int] | None, int]:
        """Return the expression that a segment between two relations begins with, and its end.

        The second value is the place of a plus sign after it with only words behind, or 0.
        """
        found = prefix(segment, self.known)
        if found is None:  # "= 112 KiB / token. At 768 tokens …"
            found = prefix(list(takewhile(lambda piece: piece.kind != "stop", segment)), self.known)
        if found is not None and not last and self._is_name(segment[found[1] - 1]):
            return (found[0], found[1] - 1), 0  # "… = 0 (tied) qProjSize = 32 × …", whose line breaks are lost
        if found is None and (plus := _plus_words(segment)):
            return prefix(segment[:plus], self.known), plus
        return found, 0

    def _end(self, line: Line, text: str, begin: _Beginning, end: int) -> None:
        """Add the chain that ends here."""
        summed = begin.goes_on and len(begin.sides) > 1  # its result is named by the chain before
        words = begin.goes_on if summed else begin.label
        if begin.goes_on and len(begin.sides) == 1:
            words = f"+ {words.strip()}"
        aside = "(" in text and text.count("(", 0, begin.start) > text.count(")", 0, begin.start)
        if ". " in words and (before := _SENTENCES.match(words := words[-MOST_SHOWN:])):
            words = words[before.end() :]
        if len(begin.sides) == 1 and words.rstrip().endswith(",") and (whole := _FOR_ALL.match(text, end)):
            words = whole[1]
        if begin.sides[1:] and begin.sides[-1].unit == "bytes" and not (begin.goes_on or begin.name):
            self._counted(line, words, begin.sides[0].expression)
        self._add(line, words, begin.sides, name=begin.name, clause=_clause(text, begin.start, end), aside=aside)

    def _counted(self, line: Line, words: str, product: Expression) -> None:
        """Add the exact total that a chain takes to bytes: "Total: 124,439,808 × 4 bytes = …"."""
        count = product.parts[0] if isinstance(product, Operation) and product.symbols == ("*",) else None
        if isinstance(count, Number) and not count.rounded and count.value >= LEAST_SUM and TOTAL.search(words):
            self._add(line, words, [Side(count)], clause=f"{words} {count.value}")

    def _linked(self, line: Line, clause: str, begin: _Beginning, side: Side, read: Sequence[Token]) -> _Beginning:
        """Return the chain with one more side.

        A percentage of the last side is skipped; a side in another unit begins a new chain.
        """
        if begin.sides and _is_share(read, begin.sides[-1]):
            return begin  # "= 512 parameters = 12.5% of W"
        if begin.sides and side.unit and begin.sides[-1].unit not in ("", side.unit):
            self._add(line, begin.label, begin.sides, name=begin.name, clause=clause)
            return _Beginning(begin.label, "", [side], read[0].start)  # "589,824 parameters = 2,359,296 bytes"
        more = begin.goes_on and not begin.sides and isinstance(side.expression, Number)
        begin.sides.append(side._replace(sure=False) if more else side)
        return begin

    def _is_name(self, token: Token) -> bool:
        """Return whether a word is spelled like a name in code and has no value yet."""
        return token.kind == "word" and token.text not in self.known and _NAME.search(token.text) is not None

    def _begin(self, line: Line, text: str, pieces: Sequence[Token], label: str) -> _Beginning:
        """Return the chain up to its first relation: its label, and its first side if any."""
        if not pieces:
            return _Beginning(label, "", [], 0)
        found = suffix(pieces, self.known)
        named = _behind_words(pieces) if found is None else 0
        if named and (product := prefix(pieces[named:], self.known)) and product[1] == len(pieces) - named:
            found = product[0], named  # "shared × 48 × 4,915,200": the word may be 1
        if found is not None and not (_is_count(pieces, found[1]) and LETTER.search(text[: pieces[found[1]].start])):
            start = pieces[found[1]].start
            words = text[pieces[0].start : start]
            if not LETTER.search(words) and not _LISTED.match(text):  # "Attention (d = 768): 4 × 768²"
                words = text[:start]
            # In GPTConfig(vocab_size=50304) the name is an argument, not a fact about the model.
            argument = (
                isinstance(found[0], Name) and _CALLED.search(text[max(0, start - MOST_SHOWN) : start]) is not None
            )
            sure = not named and is_sure(pieces, found[1], len(pieces), self.known)
            if isinstance(found[0], Number) and (count := counted_each(pieces, found[1])) is not None:
                found = Operation(("*",), (count, found[0])), found[1]
            counted = text[pieces[found[1]].end : pieces[-1].end]
            if isinstance(found[0], Number) and TOTAL.search(counted):
                words = text[: pieces[-1].end]  # "61 layers in total = 61 × 376.4M"
            return _Beginning(
                f"{label} {words}", "", [Side(found[0], False, sure, unit_of(pieces[found[1] :]))], start, argument
            )
        formula = is_variable(pieces[-1]) and _is_formula(pieces)  # "I × H + H = 3072 × 768 + 768"
        numbered = any(piece.number is not None for piece in pieces)  # not in "gate + up + down = 3 × …"
        if (plus := _plus_words(pieces)) and numbered and not formula:  # "4B + 32B + attention ≈ 42B"
            first = self._begin(line, text, pieces[:plus], label)
            self._end(line, text, first, pieces[plus - 1].end)
            words = text[pieces[plus].end : pieces[-1].end]
            return _Beginning(words, "", [], pieces[plus].start, goes_on=first.label.strip() or " ")
        if computes(pieces):
            self._miss(line)
        stops = [place for place, piece in enumerate(pieces) if piece.kind == "stop"]
        after = pieces[stops[-1] + 1 :] if stops else pieces
        name = after[-1].text if after and (len(after) == 1 or is_variable(after[-1])) else ""
        before = after[-2] if len(after) > 1 else None
        if (
            not after
            or after[-1].kind != "word"
            or (before is not None and before.kind not in ("word", "number", "open"))
        ):
            name = ""
        if before is not None and before.kind == "number" and len(after[-1].text) == 1:
            name = ""  # "12 d² + 13 d = …" gives d no value
        words = text[pieces[0].start : pieces[-1].end]
        if pieces[0].text == "*" and _counts_words(pieces[1:]):  # "× 22 layers ≈ 990M"
            return _Beginning(f"{label} {words}", "", [], pieces[-1].end)
        if computes(pieces):  # "total 32 × (attention + …) =": keep the words before the first number
            begins = max((place + 1 for place in stops if pieces[place].text == "."), default=0)
            said = pieces[begins:] if computes(pieces[begins:]) else pieces
            words = text[said[0].start : next(piece.start for piece in said if piece.kind == "number")]
        words = words if LETTER.search(words) else ""
        return _Beginning(f"{label} {words}", name, [], pieces[-1].end)


def _named(begin: _Beginning, side: Expression) -> str:
    """Return the words that a sum is equal to: "Total:" of "Total = words 38.6M + blocks 85.1M"."""
    named = is_sum(side) and not begin.sides and LETTER.search(begin.label)
    return f"{begin.label}:" if named else ""


def _ends_sum(segment: Sequence[Token], side: Expression, end: int) -> bool:
    """Return whether an expression is all of a segment, but for words that name its last addend.

    Example: "= 6.97B + 1.24B in embeddings = 8.21B".
    """
    words = segment[end:]
    sums = is_sum(side) and len(words) <= MOST_NAMED
    return not words or (sums and all(one.kind == "word" and len(one.text) > 1 for one in words))


def _is_setting(segment: Sequence[Token], relation: Token) -> bool:
    """Return whether the last word is a setting's name, as in a log: "RANK=0 STAGE=0 LAYERS=14".

    Words may precede it: "vocab_size=128256 and the width dim=4096".
    """
    if len(segment) < 2 or segment[-1].kind != "word":
        return False
    if segment[-2].kind == "stop":
        return is_variable(segment[-1])  # "that is 2K / 12 = K/6. K=8192 gives 1365"
    if len(segment[-1].text) == 1:
        return False
    words = (
        segment[0].kind == "number" and segment[-1].text.isascii() and all(one.kind == "word" for one in segment[1:])
    )
    return segment[-1].end == relation.start and (words or segment[-2].kind in ("number", "close"))


def _is_count(pieces: Sequence[Token], start: int) -> bool:
    """Return whether a label ends in a count: "Layers in total (12) = 84,934,656"."""
    last = pieces[start:]
    number = last[1].number if len(last) == 3 and last[0].kind == "open" else None
    return is_count(number)


def _is_formula(pieces: Sequence[Token]) -> bool:
    """Return whether some tokens hold no number but counts: "embeddings + 12 × per_layer"."""
    numbers = (piece.number for piece in pieces if piece.number is not None)
    return all(not number.rounded and number.value <= MOST_COUNTED for number in numbers)


def _with_unit(pieces: Sequence[Token], end: int) -> Sequence[Token]:
    """Return an expression with the two tokens behind it, unless these are of another number."""
    behind = takewhile(lambda piece: piece.number is None, pieces[end : end + 2])
    return [*pieces[:end], *behind]


def numbers_end(pieces: Sequence[Token]) -> int:
    """Return the end of some tokens without their trailing words, which change nothing."""
    end = len(pieces)
    while end > 1 and pieces[end - 1].kind == "word":
        end -= 1
    return end


def _behind_words(pieces: Sequence[Token]) -> int:
    """Return the place behind the sign of a product that begins with words, or 0."""
    place = next((place for place, piece in enumerate(pieces) if piece.kind != "word"), 0)
    return place + 1 if place and pieces[place].text == "*" else 0


def _plus_words(pieces: Sequence[Token]) -> int:
    """Return the place of a plus sign with only words after it, or 0: "85M + embeddings"."""
    place = len(pieces)
    while place and pieces[place - 1].kind == "word":
        place -= 1
    return place - 1 if 1 < place < len(pieces) and pieces[place - 1].text == "+" else 0


def _is_share(pieces: Sequence[Token], before: Side) -> bool:
    """Return whether the side is a percentage that no quotient precedes: a share, not a side."""
    return (
        pieces[-1].text.endswith("%")
        and not divides(before.expression)
        and not (isinstance(before.expression, Number) and before.expression.value <= 1)
    )


def _without_last(sum_: Operation) -> Expression:
    """Return an operation without its last part."""
    return Operation(sum_.symbols[:-1], sum_.parts[:-1]) if len(sum_.parts) > 2 else sum_.parts[0]


def _counts_words(pieces: Sequence[Token]) -> bool:
    """Return whether some tokens are a number followed only by words."""
    return len(pieces) > 1 and pieces[0].number is not None and all(piece.kind == "word" for piece in pieces[1:])


class _Beginning(NamedTuple):
    """A chain so far: its label, the variable it defines, its sides, and its start."""

    label: str
    name: str
    sides: list[Side]
    start: int
    argument: bool = False
    # Label of the chain before, if the first side is added to it: "+ embeddings ≈ 0.26B ≈ 6.7B"
    goes_on: str = ""

    def again(self, segment: Sequence[Token]) -> bool:
        """Return whether a side ends in the chain's own variable: "x2 = 1.0 (exact)  x2 = 1.0"."""
        first = self.sides[0].expression if self.sides else None
        name = self.name or (first.name if isinstance(first, Name) else "")
        return len(segment) > 1 and segment[-1].text == name

    def called(self, text: str, end: int) -> _Beginning:
        """Return the chain that ends at `end`, labelled as a total by a word behind it.

        Examples: "85M + 39M = 124M in total", "1.4B a layer, ~47B total".
        """
        if not (self.sides and _TOTAL_BEHIND.match(text, end)):
            return self
        words = "" if self.goes_on or self.label.rstrip().endswith(",") else self.label
        return self._replace(label=f"{words} total".strip())


def _clause(text: str, start: int, end: int) -> str:
    """Return a chain's text: its numbers, the words among them, and the rest of the sentence."""
    return text[start:end] + _SENTENCE.split(text[end : end + MOST_SHOWN], maxsplit=1)[0]
