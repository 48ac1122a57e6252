"""Read the number that a line states, with the product that it is stated for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import takewhile

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Undefined, evaluate
from tallystick.derivations.chains import LETTER, Chains, numbers_end
from tallystick.derivations.expressions.parser import prefix
from tallystick.derivations.expressions.phrases import computes, is_count, is_sure, is_unit
from tallystick.derivations.expressions.tokens import Token
from tallystick.derivations.expressions.units import unit_of
from tallystick.derivations.expressions.words import ABOUT, PLUS
from tallystick.derivations.reading import LEAST_SUM
from tallystick.derivations.shapes import LEAST_TYPED, meant_by, product_before, product_of, product_to, shape_before
from tallystick.derivations.slips import misrounds
from tallystick.derivations.statements import BOUND, TOTAL, Side
from tallystick.derivations.text.lines import Line
from tallystick.derivations.text.respelled import up_to_product

LONGEST_ROW = 1_000  # characters of a row with columns separated by blanks; a longer line is prose
LEAST_POINTED = 3  # arrows behind products, each with the result
MOST_SIZE = 1_000_000  # of a model: more are parameters
LEAST_LISTED = 10_000  # "85,054,464 for the 12 layers"; 2017 may be a year
NEAR_ROUNDED = 20  # 110M is within a twentieth of 108,854,784
LEAST_BYTES, MOST_BYTES = Fraction(1, 2), 20  # of a parameter: four bits, and training with Adam
_COUNTED = re.compile(
    r"\W*(?:(?:total|num(?:ber of)?|#)\W)?(?:param(?:eter)?s?|参数量?|count)(?:\scount)?\W*", re.IGNORECASE
)
# "- Shape: 50257 × 768", and below it "- Parameters: 38,597,376"
_SHAPE_ALONE = re.compile(
    r"\W*(?:weights?\s|matrix\s)?(?:shape|size|dim(?:ension)?s?|matrix|形状)\W{1,6}?(?P<sizes>[(\[]?\s*\d[\d,]*\s*[*,]\s*\d[\d,]*\s*[)\]]?)\W*",
    re.IGNORECASE,
)
_COLUMNS = re.compile(r"\s*(?P<label>\S.*?[^\W\d_].*?|[^\W\d_].*?)\s{2,}(?P<value>(?:[≈~]\s*)?[^\W_].*)")
_KEY = re.compile(r"""\W*["']\w+["']\s*""")  # "n_head": 12 of a config
_AROUND = re.compile(r"(?<=\d)\s+\*\s+(?=\d)")  # blanks in "6.61  × 10^9" part no columns
_CELLS = re.compile(r"\s{2,}")
_IN_PARENTHESES = re.compile(r"\(([^()]*)\)\s*$")
_PRODUCT_BEHIND = re.compile(r"\(\s*(\d[^()]*[*×x][^()]*\d\w?)(?:\s+[^\W\d]+){0,2}\s*\)\s*$")
_ABOUT = re.compile(r"[^=≈~]*[:\uff1a]\s*[≈~][^=≈~]*")  # "Embedding: ~460 MB (128000 × 896 × 4 bytes)"
_TIMES_BEFORE = re.compile(r"[*x]\s*(\d{1,3})\s*\([^()]*\)\s*$")
_RANGE = re.compile(r"[\d.,]+%?-[\d.,]+%?")
_PER = re.compile(r"(?<=\))\s*(?:per |/\s?)(?:layer|block|expert|head)$")  # "4 × (128 × 128 + 128) per layer"
_CHANGE = re.compile(r"[-+]\s?\d[\d.,]*\s?%")
_PLUS = PLUS | {"and", "und", "et", "ещё", "加", "加上"}
_FOR = re.compile(r"^\s*(?:for|per|für|pour|para|für|для|of)\b", re.IGNORECASE)
_AROUND_NAME = " -*`\"'•"
# "d_model: 768" is a size, and "lm_head: 589,824" a part
_SIZE = re.compile(
    r"(?:n|d|num|max)_\w+|\w+_(?:size|dim|len(?:gth)?|heads|layers|positions|width|ratio)|hidden|dim|vocab|intermediate"
)
WORD = re.compile(r"[^\W\d_]{3}")


class Values(Chains):
    """Reads the equations of a line or row, or the number that it states without one."""

    def _equations(self, line: Line, text: str, label: str = "") -> None:
        """Read the chains of a text, or the number that it states without one."""
        if self._shaped(line, text, label):
            return
        before = len(self.statements)
        if ("~" in text or "≈" in text) and _ABOUT.fullmatch(text):
            self._value(line, text, label)
        if len(self.statements) == before and not self._chains(line, text, label):
            self._value(line, text, label)

    def _shaped(self, line: Line, text: str, label: str) -> bool:
        """Add the number behind a shape, or behind a product and an arrow; return whether it is."""
        match = shape_before(text) if ")" in text or "]" in text else None
        number = alone_in(self._tokens(match["value"])) if match is not None else None
        how = product_before(match, number) if match is not None and number is not None else None
        pointed = how is None and ("→" in text or "->" in text or "=>" in text)
        if pointed and (match := product_to(text)) is not None:
            product, number = self._whole(match["product"]), alone_in(self._tokens(match["value"]))
            if isinstance(product, Operation) and number is not None:
                how = self._result(product, number)
        if match is None or number is None or how is None:
            return False
        words = f"{label} {text[: match.start('product' if pointed else 'sign')]}"
        self._add(line, words, [Side(how), Side(number, loose=match["value"][0] in "≈~")])
        return True

    def _result(self, product: Operation, number: Number) -> Operation | None:
        """Return a product whose result a number behind an arrow is, perhaps but for a digit.

        Where some have their results behind arrows, all are meant so.
        """
        found = meant_by([product], number, least=LEAST_TYPED)
        self.pointed += found is not None
        return product if found is None and self.pointed >= LEAST_POINTED else found

    def _value(self, line: Line, text: str, label: str = "") -> None:
        """Add a number that a line states without a relation.

        Examples: "Positions: 786,432", "that is 124M parameters in total".
        """
        if self._shaped(line, text, label):
            return
        text = up_to_product(text) if "(" in text else text
        words, colon, rest = text.replace("\uff1a", ":").rpartition(":")
        if _KEY.fullmatch(words) and not TOTAL.search(words):
            return  # an entry of a config
        if "*" in rest:
            rest, text = (_AROUND.sub(" * ", one) for one in (rest, text))
        columns = self._columns(text, rest, colon=bool(colon))
        if columns:
            words, rest = columns["label"], columns["value"]
        value, *behind = _CELLS.split(rest.strip()) if columns else [rest]
        if len(behind) == 1 and alone_in(self._tokens(value)) is None and isinstance(self._whole(value), Operation):
            value, behind = behind[0], [value]  # "wte  50257 × 768  38,597,376"
        pieces = self._tokens(value)
        number = alone_in(pieces)
        if number is not None and (colon or columns or label):
            product = self._product_near(words, value, behind, number) or self._product_above(line, words, number)
            before = list(takewhile(lambda piece: piece.text != "→", pieces))  # "124,439,808 → 497.8 MB"
            counts = len(before) < len(pieces) or (columns and self._have_bytes(pieces, number, behind))
            unit = unit_of(before) or ("parameters" if counts else "")
            sides = [Side(number, loose=pieces[0].kind != "number", unit=unit)]
            if (again := _mistyped_again(pieces, number)) is not None:
                sides.append(Side(again, loose=True))
            if product is not None:
                sides.insert(0, product)
                words = next(filter(LETTER.search, _CELLS.split(words)), words)  # without "(768,) × 2"
            alone = colon and len(sides) == 1 and not (label or sides[0].unit)
            self._add(line, f"{label} {words}", sides, name=_size_named(words, number) if alone else "")
        elif number is not None and not words:
            self._add(line, _behind(text, pieces, number), [Side(number)])
        elif (first := _leading(pieces)) is not None:
            own = colon and WORD.search(words)  # "24 layers: 478,273,536. The final norm has 512 parameters."
            self._add(line, words if own else _behind(text, pieces, first), [Side(first)])
        elif TOTAL.search(text) and not BOUND.search(text):
            numbers = said_in(pieces)
            if len(numbers) == 1 and numbers[0].value >= LEAST_SUM and not any(p.kind == "operator" for p in pieces):
                self._add(line, f"{label} {text}", [Side(numbers[0])])

    def _have_bytes(self, pieces: Sequence[Token], number: Number, behind: Sequence[str]) -> bool:
        """Return whether a column behind a lone count has its bytes: "Head  16,384,000  32 MB"."""
        if any(piece.kind == "word" for piece in pieces) or not number.value:
            return False
        cells = (cell for cell in map(self._tokens, behind) if unit_of(cell) == "bytes")
        sizes = (size.value for cell in cells if (size := alone_in(cell)) is not None)
        return any(LEAST_BYTES * number.value <= size <= MOST_BYTES * number.value for size in sizes)

    def _columns(self, text: str, rest: str, *, colon: bool) -> re.Match[str] | None:
        """Return the columns of a row separated by blanks: "Step 2: embeddings    39,383,808"."""
        if len(text) > LONGEST_ROW or (
            colon and ("  " not in rest.strip() or alone_in(self._tokens(rest)) is not None)
        ):
            return None
        return _COLUMNS.fullmatch(text)

    def _product_near(self, words: str, value: str, behind: Sequence[str], number: Number) -> Side | None:
        """Return the product that a line states for its number: in its label, or next to it.

        Args:
            words: the label.
            value: the text of the number.
            behind: the columns behind it.
            number: its value.
        """
        inside = _IN_PARENTHESES.search(words)  # "Token embedding (50257 × 768): 38,597,376"
        after = _PRODUCT_BEHIND.search(value)  # "12 blocks:  85.0M   (7.08M × 12)"
        found = [inside[1] if inside else "", after[1] if after else ""]
        product = next((how for how in map(self._product, found) if how is not None), None)
        if product is not None and inside and (times := _TIMES_BEFORE.search(words)):
            return _several(product, int(times[1]), number)  # "Router × 3 (1,536 × 28)   129,024"
        if product is None and behind and isinstance(how := self._whole(behind[0]), Operation):
            return Side(how)
        symbolic = self._whole(words.strip()) if product is None and "*" in words else None
        if isinstance(symbolic, Operation) and any(isinstance(part, Name) for part in symbolic.parts):
            return Side(symbolic)  # "hidden_size * hidden_size: 589,824"
        how = product_of(_CELLS.split(words)[-1], number) or product_of(words, number) if product is None else None
        return product if how is None else Side(how)

    def _product_above(self, line: Line, words: str, number: Number) -> Side | None:
        """Return the product of the shape on the line above "Parameters: 77,194,752", or None."""
        above = self._right_above(line)
        shape = _SHAPE_ALONE.fullmatch(above.plain) if above is not None and _COUNTED.fullmatch(words) else None
        if shape is None:
            return None
        sizes = ", ".join(
            re.findall(r"\d+", shape["sizes"].replace(",", "") if "*" in shape["sizes"] else shape["sizes"])
        )
        how = product_of(f"({sizes})", number, biased=True)
        return None if how is None else Side(how)

    def _product(self, text: str) -> Side | None:
        """Return the arithmetic at the start of a text, or None.

        It is sure if nothing follows it: "1,536 × 28, plus a scalar" is more than its product.
        """
        pieces = self._tokens(text) if text else []
        found = prefix(pieces, self.known)
        if found is None or not isinstance(found[0], Operation):
            return None
        unit = (
            "bytes"
            if any(piece.kind == "word" and unit_of([*pieces[:1], piece]) == "bytes" for piece in pieces)
            else ""
        )
        return Side(found[0], sure=numbers_end(pieces) <= found[1], unit=unit)

    def _whole(self, cell: str) -> Expression | None:
        """Return the expression if a cell is nothing but arithmetic, else None."""
        if _RANGE.fullmatch(cell) or _CHANGE.match(cell):
            return None  # "30-50%", "2024-12", "-52% (smaller)"
        pieces = self._tokens(_PER.sub("", cell.lstrip("≈~ ")))
        if any(piece.kind == "operator" for piece in pieces) and not is_sure(pieces, 0, len(pieces), self.known):
            return None  # "1 x A100 80GB"
        if len(pieces) > 1 and pieces[0].text.endswith("%"):
            return None  # "33% more than the encoder"
        if len(pieces) > 2 and pieces[1].kind == "open" and pieces[-1].kind == "close" and alone_in(pieces):
            return pieces[0].number  # "126,700,032 (~126.70M)"
        found = prefix(pieces, self.known)
        return found[0] if found and found[1] == len(pieces) else None


def _leading(pieces: Sequence[Token]) -> Number | None:
    """Return the number that a line begins with, if it states no other.

    Examples: "10,758,528   about 10.8 million" under a drawn line, "85,054,464 for the 12 layers",
    "plus 1,536 for the final norm".
    """
    rest = pieces[1:] if pieces and pieces[0].text.lower() in _PLUS else pieces
    first = rest[0].number if rest else None
    if first is None or computes(pieces):
        return None
    others = [one for one in said_in(rest)[1:] if first.value < LEAST_LISTED or not is_count(one)]
    return None if others else first


def _behind(text: str, pieces: Sequence[Token], number: Number) -> str:
    """Return the words behind a number: "85,054,464 for the 12 layers" is of the layers."""
    end = next(piece.end for piece in pieces if piece.number is number)
    words = _FOR.sub("", text[end:]).strip(" .,;:")
    return words if WORD.search(words) and _FOR.match(text[end:]) else ""


def said_in(pieces: Sequence[Token]) -> list[Number]:
    """Return the numbers among some tokens.

    A number that only rounds the one before is omitted: "108,854,784, about 110M".
    """
    found: list[Number] = []
    for number in (piece.number for piece in pieces if piece.number is not None):
        near = found and number.rounded and abs(found[-1].value - number.value) * NEAR_ROUNDED <= found[-1].value
        if not near:
            found.append(number)
    return found


def alone_in(pieces: Sequence[Token]) -> Number | None:
    """Return the only number that some tokens state, or None.

    Examples: "≈ 38.6M", "about 124M parameters", "70,553,706,496 (70.55B)".
    """
    place = 0
    while place < len(pieces) and (pieces[place].text in "≈~" or pieces[place].text.lower() in ABOUT):
        place += 1
    if place == len(pieces) or pieces[place].number is None:
        return None
    depth = 0
    for at, piece in enumerate(pieces[place + 1 :], place + 1):
        rate = piece.text == "/" and any(map(is_unit, pieces[at + 1 : at + 2]))  # "2,360,064 /layer"
        if (piece.text in "→←" or rate) and not depth:
            sizes = piece.text == "→" and any(one.number is not None for one in pieces[at + 1 : at + 2])
            sizes = sizes and unit_of(pieces[at + 1 : at + 4]) != "bytes"  # "124,439,808 → 497.8 MB"
            return None if sizes else pieces[place].number  # "768 → 3072" are sizes
        depth += (piece.kind == "open") - (piece.kind == "close")
        if not depth and piece.kind in ("number", "operator", "relation"):
            return None
    return pieces[place].number


def _size_named(words: str, number: Number) -> str:
    """Return the name of a size that a line sets, as "d_model: 768" does, or ""."""
    name = words.strip(_AROUND_NAME)
    sets = _SIZE.fullmatch(name) and not TOTAL.search(name) and number.value < MOST_SIZE
    return name if sets else ""


def _mistyped_again(pieces: Sequence[Token], number: Number) -> Number | None:
    """Return a number that rounds another, but for a digit: "2,127,057,600 (3.13B)", or None."""
    again = next((piece.number for piece in pieces[1:] if piece.number is not None), None)
    return again if again is not None and misrounds(again, number.value) else None


def _several(product: Side, times: int, number: Number) -> Side:
    """Return a product, taken several times if that is the number."""
    both = Operation(("*",), (Number(Fraction(times)), product.expression))
    try:
        fits = evaluate(both, {}).exact == number.value
    except Undefined:  # it holds variables
        return product
    return product._replace(expression=both) if fits else product
