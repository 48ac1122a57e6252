"""Read the number that a line or a table's row states, with the product that it is stated for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Undefined, evaluate
from tallystick.derivations.chains import LETTER, Chains, numbers_end
from tallystick.derivations.lines import RELATION, Line
from tallystick.derivations.parser import prefix, suffix
from tallystick.derivations.phrases import ABOUT, PLUS, computes, is_count, is_sure, is_unit, unit_of
from tallystick.derivations.reading import LEAST_SUM, MOST_SHOWN, as_shown
from tallystick.derivations.respelled import up_to_product
from tallystick.derivations.shapes import meant_by, product_before, product_of, shape_before
from tallystick.derivations.slips import misrounds
from tallystick.derivations.statements import BOUND, TOTAL, Row, Side, Statement
from tallystick.derivations.tokens import Token

LONGEST_ROW = 1_000  # characters of a row with columns separated by blanks; a longer line is prose
LEAST_LISTED = 10_000  # "85,054,464 for the 12 layers"; 2017 may be a year
NEAR_FACTOR = 10  # a lone factor and its product with a digit wrong, in two columns
NEAR_ROUNDED = 20  # 110M is within a twentieth of 108,854,784
_COLUMNS = re.compile(r"\s*(?P<label>\S.*?[^\W\d_].*?|[^\W\d_].*?)\s{2,}(?P<value>(?:[≈~]\s*)?[^\W_].*)")
_KEY = re.compile(r"""\W*["']\w+["']\s*""")  # "n_head": 12 of a config
_AROUND = re.compile(r"(?<=\d)\s+\*\s+(?=10\^)")  # blanks in "6.61  × 10^9" part no columns
_CELLS = re.compile(r"\s{2,}")
_PRODUCT_BEHIND = re.compile(r"\(\s*(\d[^()]*[*×x][^()]*\d\w?)(?:\s+[^\W\d]+){0,2}\s*\)\s*$")
_ABOUT = re.compile(r"[^=≈~]*[:\uff1a]\s*[≈~][^=≈~]*")  # "Embedding: ~460 MB (128000 × 896 × 4 bytes)"
_WORDED = re.compile(r"\((\d[^()]{0,200}[*×]\s?\d[^()]{0,80})\)\s*$")
_REMARK = re.compile(r"\s*\([^()\d]*\)\s*$")
_IN_LABEL = re.compile(r"\((\d[\d,]*(?:\s*[*x×]\s*\d[\d,]*)+)(?:,\s[^()\d]*)?\)\s*$")
_TIMES_BEFORE = re.compile(r"[*x]\s*(\d{1,3})\s*\([^()]*\)\s*$")
_COUNT = re.compile(r"[*x]\s?(\d{1,4})")  # a cell "×126"
_INNER = re.compile(r"[A-Za-z]\w*_\w+|W[A-Z]")  # "| Attention | W_Q | (4096, 4096) | 16.8M |"
# The size of a model in a table's first column: "d_inner (expanded)", "num_layers"
_SIZE = re.compile(
    r"(?P<name>[dn](?:um)?(?:_\w+|[A-Z]\w*)|[a-z_]+(?:_(?:dim|size|len|length|heads|layers|experts|rank)|(?:Dim|Size|Length|Heads|Layers))"
    r"|[A-Zd])(?=\s*(?:\(|$))"
)
_RANGE = re.compile(r"[\d.,]+%?-[\d.,]+%?")
_CHANGE = re.compile(r"[-+]\s?\d[\d.,]*\s?%")
_PLUS = PLUS | {"and", "und", "et", "ещё", "加", "加上"}
_FOR = re.compile(r"^\s*(?:for|per|für|pour|para|für|для|of)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3}")
_SUM_IN_LABEL = re.compile(r"\((\d[\d,]*\s*\*\s*\d[\d,]*)\)[^()+]*\+[^()+]*\((\d[\d,]*\s*\*\s*\d[\d,]*)\)[^()+]*$")


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
        """Add the number that a line states behind a shape; return whether there is one."""
        match = shape_before(text) if ")" in text or "]" in text else None
        number = alone_in(self._tokens(match["value"])) if match is not None else None
        how = product_before(match, number) if match is not None and number is not None else None
        if match is None or number is None or how is None:
            return False
        words = f"{label} {text[: match.start('sign')]}"
        self._add(line, words, [Side(how), Side(number, loose=match["value"][0] in "≈~")])
        return True

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
            product = self._product_near(words, value, behind, number)
            sides = [Side(number, loose=pieces[0].kind != "number", unit=unit_of(pieces))]
            if (again := _mistyped_again(pieces, number)) is not None:
                sides.append(Side(again, loose=True))
            if product is not None:
                sides.insert(0, product)
                words = next(filter(LETTER.search, _CELLS.split(words)), words)  # without "(768,) × 2"
            self._add(line, f"{label} {words}", sides)
        elif number is not None and not words:
            self._add(line, _behind(text, pieces, number), [Side(number)])
        elif (first := _leading(pieces)) is not None:
            self._add(line, _behind(text, pieces, first), [Side(first)])
        elif TOTAL.search(text) and not BOUND.search(text):
            numbers = said_in(pieces)
            if len(numbers) == 1 and numbers[0].value >= LEAST_SUM and not any(p.kind == "operator" for p in pieces):
                self._add(line, f"{label} {text}", [Side(numbers[0])])

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
        inside = re.search(r"\(([^()]*)\)\s*$", words)  # "Token embedding (50257 × 768): 38,597,376"
        after = _PRODUCT_BEHIND.search(value)  # "12 blocks:  85.0M   (7.08M × 12)"
        found = [inside[1] if inside else "", after[1] if after else ""]
        product = next((how for how in map(self._product, found) if how is not None), None)
        if product is not None and inside and (times := _TIMES_BEFORE.search(words)):
            return _several(product, int(times[1]), number)  # "Router × 3 (1,536 × 28)   129,024"
        if product is None and behind and isinstance(how := self._whole(behind[0]), Operation):
            return Side(how)
        how = product_of(_CELLS.split(words)[-1], number) or product_of(words, number) if product is None else None
        return product if how is None else Side(how)

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

    def _row(self, line: Line) -> None:
        """Read a table row "| label | product | value |".

        A cell that holds an equation is read like a line.
        """
        cells = [cell.strip() for cell in line.plain.strip().removeprefix("|").removesuffix("|").split("|")]
        wholes = [self._whole(cell) for cell in cells]
        numbered = [side for side in wholes if isinstance(side, Number)]
        self._keep(line, cells, wholes)
        for place, cell in enumerate(cells):
            if wholes[place] is None:
                wholes[place] = next((how for number in numbered if (how := product_of(cell, number))), None)
        if isinstance(wholes[0], Number) and _WORD.search(cells[0]) and any(wholes[1:]):
            wholes[0] = None  # "| 32 layers | 32 × 202,383,360 | 6,476,267,520 |" begins with a label
        label = next(
            (cell for cell, side in zip(cells, wholes, strict=True) if side is None and LETTER.search(cell)), ""
        )
        place = cells.index(label) if label else 0
        inner = cells[place + 1] if label and place + 1 < len(cells) else ""
        before = len(self.statements)
        for cell in cells:
            if RELATION.search(cell.lstrip("≈~ ")):
                self._equations(line, cell, "" if cell == label else label)
        read = self.statements[before:]
        if label and not any(isinstance(side, Operation) for side in wholes) and not any(wholes[: place + 1]):
            wholes[place] = self._in_label(label, read) or self._ends_label(label, numbered)
        size = _SIZE.match(label)
        if size is not None and numbered and numbered == [side for side in wholes if side is not None]:
            if len(numbered) == 1:
                self._add(line, label, [Side(numbered[0])], name=size["name"])  # "| d_model | 1280 |"
        elif not (read or any(side is not None for side in wholes)):
            self.head = tuple(cells)
        elif all(map(_only_sizes, read)) or any(isinstance(side, Operation) for side in wholes):
            self._add_row(line, f"{label} {inner}" if _INNER.fullmatch(inner) else label, cells, wholes)
            self._join(before)

    def _join(self, before: int) -> None:
        """Join the two statements of a row if the second goes on from the first one's last side.

        Example: "| wte | V × d = 50257 × 768 | 38,597,376 |".
        """
        if len(self.statements) != before + 2:
            return
        first, second = self.statements[before:]
        if not first.name and first.sides[-1].expression == second.sides[0].expression:
            self.statements[before:] = [second._replace(sides=(*first.sides[:-1], *second.sides))]

    def _keep(self, line: Line, cells: Sequence[str], wholes: Sequence[Expression | None]) -> None:
        """Keep the numbers of a row, and the results of its equations, for the table's columns."""
        behind = [RELATION.split(cell)[-1].strip() or cell for cell in cells]
        pairs = zip(cells, behind, wholes, strict=True)
        sides = [whole if result == cell else self._whole(result) for cell, result, whole in pairs]
        numbers = [
            Side(side, loose=cell[0] in "≈~") if isinstance(side, Number) and not cell.endswith("%") else None
            for cell, side in zip(cells, sides, strict=True)
        ]
        if sum(number is not None for number in numbers) < 2:
            return
        plain = as_shown(line)
        self.rows.append(Row(line.first, line.text[:MOST_SHOWN], plain, tuple(numbers)))

    def _in_label(self, label: str, read: Sequence[Statement]) -> Expression | None:
        """Return the product that a row's label states, or None.

        Args:
            label: the label of the row.
            read: the equations in it: "V × d = 30522 × 768" states no number.
        """
        if read:
            last = read[-1].sides[-1]
            is_product = isinstance(last.expression, Operation) and last.expression.symbols[0] == "*"
            return last.expression if last.sure and is_product else None
        if several := _SUM_IN_LABEL.search(label):  # "| Positions (512 × 768) + segments (2 × 768) | 0.4M |"
            return self._whole(f"{several[1]} + {several[2]}")
        inside = _IN_LABEL.search(label)
        return self._whole(inside[1]) if inside else None  # "| Words (30522 × 768) | 23.4M |"

    def _ends_label(self, label: str, numbers: Sequence[Number]) -> Expression | None:
        """Return the arithmetic at the end of a row's label if a number of the row is meant as it.

        Examples: "| wte 50304 × 768 (tied) | 38,633,472 |", "| KV (8 heads × 128 dims) | 1,024 |".
        """
        inside = _WORDED.search(label)
        found = suffix(self._tokens(inside[1] if inside else _REMARK.sub("", label)), self.known) if numbers else None
        if found is None or not isinstance(found[0], Operation):
            return None
        try:
            return next((found[0] for number in numbers if meant_by([found[0]], number, least=LEAST_SUM)), None)
        except Undefined:  # it holds variables
            return None

    def _add_row(self, line: Line, label: str, cells: Sequence[str], wholes: Sequence[Expression | None]) -> None:
        """Add the statements of a row: its product and value, perhaps also all layers' product."""
        products = [place for place, side in enumerate(wholes) if side is not None and not isinstance(side, Number)]
        numbers = [
            place for place, side in enumerate(wholes) if isinstance(side, Number) and not cells[place].endswith("%")
        ]
        if not numbers:
            return
        if products:
            self.how = products[0]
        elif self.how in numbers and len(numbers) > 1 and _are_near(wholes[self.how], wholes[numbers[-1]]):
            # a product of one factor
            products = [self.how]
            numbers.remove(self.how)
        sides = {
            place: Side(side, loose=cells[place][0] in "≈~", unit=unit_of(self._tokens(cells[place])))
            for place, side in enumerate(wholes)
            if side is not None
        }
        behind = [place for place in numbers if products and place > products[0]]
        value = behind[0] if behind else numbers[0] if products else numbers[-1]
        row = [*products[:1], value]
        if products and sides[products[0]].loose:  # "| ≈ 12d² | 7,087,872 |": the number goes first
            row.reverse()
        several = _counted(cells, [(place, sides[place]) for place in numbers])
        if several and value == numbers[-1] and not products:
            self._add(line, label, [several, sides[value]])
            return
        if len(numbers) > 1 and not products:
            for before, place in enumerate(numbers):
                head = self.head[place] if place < len(self.head) else ""
                clause = f"{head} {cells[place]}"
                self._add(line, label, [sides[place]], clause=clause, column=len(numbers) - before)
            return
        self._add(line, label, [sides[place] for place in row])
        one, last = wholes[value], wholes[numbers[-1]]
        # A smaller number behind it is a size, such as a rank.
        larger = isinstance(one, Number) and isinstance(last, Number) and last.value > one.value
        if numbers[-1] != value and (several or larger):
            # "| W_q | 768 × 768 | 589,824 | 7,077,888 |": one layer, then all layers
            self._add(line, label, [*([several] if several else ()), sides[numbers[-1]]])

    def _whole(self, cell: str) -> Expression | None:
        """Return the expression if a cell is nothing but arithmetic, else None."""
        if _RANGE.fullmatch(cell) or _CHANGE.match(cell):
            return None  # "30-50%", "2024-12", "-52% (smaller)"
        pieces = self._tokens(cell.lstrip("≈~ "))
        if any(piece.kind == "operator" for piece in pieces) and not is_sure(pieces, 0, len(pieces), self.known):
            return None  # "1 x A100 80GB"
        if len(pieces) > 1 and pieces[0].text.endswith("%"):
            return None  # "33% more than the encoder"
        if len(pieces) > 2 and pieces[1].kind == "open" and pieces[-1].kind == "close" and alone_in(pieces):
            return pieces[0].number  # "126,700,032 (~126.70M)"
        found = prefix(pieces, self.known)
        return found[0] if found and found[1] == len(pieces) else None


def _are_near(one: Expression | None, other: Expression | None) -> bool:
    if not (isinstance(one, Number) and isinstance(other, Number)):
        return False
    return abs(one.value - other.value) * NEAR_FACTOR <= other.value


def _only_sizes(statement: Statement) -> bool:
    """Return whether an equation of a remark only gives a size: "of hidden_size = 33"."""
    sides = [side.expression for side in statement.sides]
    return bool(statement.name) and all(isinstance(side, Name) or _is_size(side) for side in sides)


def _counted(cells: Sequence[str], numbers: Sequence[tuple[int, Side]]) -> Side | None:
    """Return the product of a row's number and its count: "| 16.4K | ×126 | 2.1M |"."""
    counts = [(place, int(count[1])) for place, cell in enumerate(cells) if (count := _COUNT.fullmatch(cell))]
    if len(counts) != 1 or counts[0][1] < 2:
        return None
    (place, times), *_ = counts
    before, behind = ([side for where, side in numbers if (where < place) is first] for first in (True, False))
    return Side(Operation(("*",), (before[-1].expression, Number(Fraction(times))))) if before and behind else None


def _is_size(side: Expression) -> bool:
    return isinstance(side, Number) and side.value < LEAST_SUM


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
    return words if _WORD.search(words) and _FOR.match(text[end:]) else ""


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
            return None if sizes else pieces[place].number  # "768 → 3072" are sizes
        depth += (piece.kind == "open") - (piece.kind == "close")
        if not depth and piece.kind in ("number", "operator", "relation"):
            return None
    return pieces[place].number


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
