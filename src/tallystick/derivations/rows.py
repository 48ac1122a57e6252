"""Read the rows of a table: a label, a product and its number, each in a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Undefined, evaluate, is_sum
from tallystick.derivations.chains import LETTER
from tallystick.derivations.expressions.parser import prefix, suffix
from tallystick.derivations.expressions.phrases import is_sure
from tallystick.derivations.expressions.units import unit_of
from tallystick.derivations.expressions.words import ABOUT
from tallystick.derivations.reading import LEAST_SUM, MOST_SHOWN, as_shown
from tallystick.derivations.shapes import meant_by, product_of, shape_in
from tallystick.derivations.statements import TOTAL, Row, Side, Statement
from tallystick.derivations.text.lines import RELATION, Line
from tallystick.derivations.values import MOST_SIZE, WORD, Values

NEAR_FACTOR = 10  # a lone factor and its product with a digit wrong, in two columns
_ABOUT = re.compile(rf"^(?:{'|'.join(ABOUT)})(?:\.|\b)?\s*(?=\d)", re.IGNORECASE)  # "| about 38.6M |"
LEAST_COMPARED = 2  # numbers of a row with which a change stands: "| 67.1M | 41.9M | -25.2M |"
_CHANGE = re.compile(r"[-+\u2212\u2013]\s?\d[\d.,]*\s?(?:[KMBT]i?B?|B)?")
LEAST_PROSE = 6  # words of a sentence
_RELATES = re.compile(r"[=≈]|\d\s?~\s?\d")
_WORDED = re.compile(r"\((\d[^()]{0,200}[*×]\s?\d[^()]{0,80})\)\s*$")
_REMARK = re.compile(r"\s*\([^()\d]*\)\s*$")
_IN_LABEL = re.compile(r"\((\d[\d,]*(?:\s*[*x×]\s*\d[\d,.]*[KMB]?(?:\^\d)?)+)(?:,\s[^()\d]*)?\)\s*$")
_RANGE = re.compile(r"\d\s?[KMBT]?-\d")  # "| 7-8B | 1 | 1 × 24 GB |"
_BLANK = re.compile(r"[-\u2013\u2014]|n/?a|none|", re.IGNORECASE)
_COUNT = re.compile(r"[*x]\s?(\d{1,4})")  # a cell "×126"
_INNER = re.compile(r"[A-Za-z]\w*_\w+(?:\.\w+)*|W[A-Z]")  # "| Attention | W_Q | (4096, 4096) | 16.8M |"
# The size of a model in a table's first column: "d_inner (expanded)", "num_layers"
_SIZE = re.compile(
    r"(?P<name>[dn](?:um)?(?:_\w+|[A-Z]\w*)|[a-z_]+(?:_(?:dim|size|len|length|heads|layers|experts|rank)|(?:Dim|Size|Length|Heads|Layers))"
    r"|[A-Zd])(?=\s*(?:\(|$))"
)
_ADDEND = r"[^()+]*\(\d[^()]*[*^][^()]*\)[^()+]*"
_SUM_IN_LABEL = re.compile(rf"{_ADDEND}(?:\+{_ADDEND})+")  # "Positions (512 × 768) + segments (2 × 768)"


class Rows(Values):
    """Reads the rows of tables; a cell that holds an equation is read like a line."""

    def _row(self, line: Line) -> None:
        """Read a table row "| label | product | value |".

        A cell that holds an equation is read like a line.
        """
        row = line.plain.strip().removeprefix("|").removesuffix("|")
        cells = [_ABOUT.sub("≈", cell.strip()) for cell in row.split("|")]
        total = TOTAL.search(line.plain) is not None  # "| Total | 18-20M |"
        wholes = [self._whole(cell) if total or not _RANGE.search(cell) else None for cell in cells]
        changes = [place for place, cell in enumerate(cells) if _CHANGE.fullmatch(cell)]
        if len(cells) - len(changes) - wholes.count(None) >= LEAST_COMPARED:
            wholes = [None if place in changes else side for place, side in enumerate(wholes)]
        numbered = [side for side in wholes if isinstance(side, Number)]
        self._keep(line, cells, wholes)
        for place, cell in enumerate(cells):
            if wholes[place] is None:
                wholes[place] = next((how for number in numbered if (how := product_of(cell, number))), None)
                wholes[place] = wholes[place] or (self._named_sum(cell) if place else None)
        others = (
            wholes[1:]
            if isinstance(wholes[0], Number | Name)
            else [one for one in wholes[1:] if isinstance(one, Operation)]
        )
        if WORD.search(cells[0]) and any(others):
            wholes[0] = None  # "| 6 encoder + 6 decoder layers | 6 × 7,356,416 | 44,138,496 |" begins with a label
        label = next(
            (cell for cell, side in zip(cells, wholes, strict=True) if side is None and LETTER.search(cell)), ""
        )
        place = cells.index(label) if label else 0
        inner = cells[place + 1] if label and place + 1 < len(cells) else ""
        before = len(self.statements)
        for cell in cells:
            if RELATION.search(cell.lstrip("≈~ ")) and not _is_prose(cell):
                self._equations(line, cell, "" if cell == label else label)
        self._labelled_sum(line, label, cells, numbered)
        read = self.statements[before:]
        if label and not any(isinstance(side, Operation) for side in wholes) and not any(wholes[: place + 1]):
            wholes[place] = self._in_label(label, read) or self._ends_label(label, numbered)
        size = _SIZE.match(label)
        if any(number.value > MOST_SIZE for number in numbered) or any(cell.endswith("%") for cell in cells):
            size = None  # "| E (embedding, tied) | 38,597,376 | 31.0% |" is a part
        if size is not None and numbered and numbered == [side for side in wholes if side is not None]:
            if len(numbered) == 1:
                self._add(line, label, [Side(numbered[0])], name=size["name"])  # "| d_model | 1280 |"
        elif not (read or any(side is not None for side in wholes)):
            self.head = tuple(cells)
        elif all(map(_only_sizes, read)) or any(isinstance(side, Operation) for side in wholes):
            self._add_row(line, f"{label} {inner}" if _INNER.fullmatch(inner) else label, cells, wholes, read)
            self._join(before)
            self._put_before(before, [side for side in wholes if side is not None])

    def _labelled_sum(self, line: Line, label: str, cells: Sequence[str], numbered: Sequence[Number]) -> None:
        """Read the sum that a row's label states with the row's only count, if there is one."""
        if "+" in label and _SUM_IN_LABEL.fullmatch(label) and RELATION.search(label) is None:
            counts = [cell for cell in cells if self._whole(cell) in numbered and cell[-1] != "%"]
            if len(counts) == 1:
                self._equations(line, f"{label} = {counts[0]}", label)

    def _join(self, before: int) -> None:
        """Join the two statements of a row if one goes on from the other one's last side.

        Examples: "| wte | V × d = 50257 × 768 | 38,597,376 |", "| wte | 50257 × 768 | 38,597,376
        (~38.6M) |".
        """
        if len(self.statements) != before + 2:
            return
        first, second = self.statements[before:]
        if first.column:
            return  # "| Norms | 266,240 | 266,240 |" of two models
        if not first.name and first.sides[-1].expression == second.sides[0].expression:
            self.statements[before:] = [second._replace(sides=(*first.sides[:-1], *second.sides))]
        elif not first.name and first.sides[0].expression == second.sides[-1].expression:
            self.statements[before:] = [second._replace(sides=(*second.sides, *first.sides[1:]))]

    def _put_before(self, before: int, wholes: Sequence[Expression]) -> None:
        """Put the only product of a row before the number that another cell states and rounds.

        Example: "| Segments | 2 × 768 | 1,536 ≈ 0.002M |".
        """
        if len(wholes) != 1 or not isinstance(wholes[0], Operation) or len(self.statements) != before + 1:
            return
        stated = self.statements[before]
        number = stated.sides[0].expression
        try:
            near = isinstance(number, Number) and meant_by([wholes[0]], number, least=LEAST_SUM) is not None
        except Undefined:  # it holds variables
            return
        alone = near and all(isinstance(side.expression, Number) for side in stated.sides) and len(stated.sides) > 1
        if alone and not (stated.name or stated.aside):
            self.statements[before] = stated._replace(sides=(Side(wholes[0]), *stated.sides))

    def _keep(self, line: Line, cells: Sequence[str], wholes: Sequence[Expression | None]) -> None:
        """Keep the numbers of a row, its equations' results and its shapes, for the columns."""
        behind = [RELATION.split(cell)[-1].strip() or cell for cell in cells]
        pairs = zip(cells, behind, wholes, strict=True)
        sides = [whole if result == cell else self._whole(result) for cell, result, whole in pairs]
        numbers = [
            Side(side, loose=cell[0] in "≈~") if isinstance(side, Number) and not cell.endswith("%") else _shape(cell)
            for cell, side in zip(cells, sides, strict=True)
        ]
        if sum(number is not None for number in numbers) < 2:
            return
        plain = as_shown(line)
        self.rows.append(Row(line.first, line.text[:MOST_SHOWN], plain, tuple(numbers)))

    def _in_label(self, label: str, read: Sequence[Statement]) -> Expression | None:
        """Return the product or sum that a row states with its label, or None.

        Args:
            label: the label of the row. Of a sum in it, no addend alone is the number's product.
            read: the equations in it: "V × d = 30522 × 768" states no number.
        """
        if read:
            last = read[-1].sides[-1]
            computed = isinstance(last.expression, Operation) and last.expression.symbols[0] in "*+"
            return last.expression if last.sure and computed else None
        inside = None if "+" in label and _SUM_IN_LABEL.search(label) else _IN_LABEL.search(label)
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

    def _add_row(
        self,
        line: Line,
        label: str,
        cells: Sequence[str],
        wholes: Sequence[Expression | None],
        read: Sequence[Statement],
    ) -> None:
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
        if len(products) > 1 and len(numbers) == 1:
            wholes = self._nearest(wholes, products, numbers[0])
        units = {side.expression: side.unit for one in read for side in one.sides}
        sides = {
            place: Side(
                side, loose=cells[place][0] in "≈~", unit=unit_of(self._tokens(cells[place])) or units.get(side, "")
            )
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
            self.columns = len(numbers)
            for before, place in enumerate(numbers):
                clause = self._headed(cells, place)
                self._add(line, label, [sides[place]], clause=clause, column=len(numbers) - before)
            return
        if not products and (column := self._column_of(cells, numbers[0])):
            self._add(line, label, [sides[numbers[0]]], clause=self._headed(cells, numbers[0]), column=column)
            return
        related = not products and any(map(RELATION.search, cells))  # the number next to its bytes
        said = [cell for cell in cells if not _is_prose(cell)]
        clause = f"{label} {cells[value]}" if related else f"| {' | '.join(said)} |" if len(said) < len(cells) else ""
        self._add(line, label, [sides[place] for place in row], clause=clause, defines=False)  # "| Norm | d | 1,024 |"
        one, last = wholes[value], wholes[numbers[-1]]
        # A smaller number behind it is a size, such as a rank.
        larger = isinstance(one, Number) and isinstance(last, Number) and last.value > one.value
        if numbers[-1] != value and (several or larger):
            # "| W_q | 768 × 768 | 589,824 | 7,077,888 |": one layer, then all layers
            clause = self._headed(cells, numbers[-1])
            self._add(line, label, [*([several] if several else ()), sides[numbers[-1]]], clause=clause)

    def _column_of(self, cells: Sequence[str], number: int) -> int:
        """Return the column of the only number of a row whose other cells are blank, or 0.

        Example: "| cross-attention | - | 6,291,456 |" below a row with two numbers.
        """
        slots = [place for place, cell in enumerate(cells) if place and (place == number or _BLANK.fullmatch(cell))]
        return len(slots) - slots.index(number) if 1 < len(slots) == self.columns and number else 0

    def _headed(self, cells: Sequence[str], place: int) -> str:
        """Return a cell behind the words above its column."""
        head = self.head[place] if place < len(self.head) else ""
        return f"{head} {cells[place]}"

    def _nearest(
        self, wholes: Sequence[Expression | None], products: Sequence[int], number: int
    ) -> Sequence[Expression | None]:
        """Return the cells of a row, with its products added in the first if that is nearer."""
        stated, first = wholes[number], wholes[products[0]]
        parts = tuple(part for place in products if (part := wholes[place]) is not None)
        both = Operation(("+",) * (len(parts) - 1), parts)
        try:
            values = [evaluate(one, {}).exact for one in (first, both) if one is not None]
        except Undefined:  # they hold variables
            return wholes
        value = stated.value if isinstance(stated, Number) else Fraction(0)
        if abs(values[1] - value) >= abs(values[0] - value):
            return wholes
        return [both if place == products[0] else one for place, one in enumerate(wholes)]

    def _named_sum(self, cell: str) -> Expression | None:
        """Return the sum in a cell whose addends follow their names: "gamma 128 + beta 128"."""
        pieces = self._tokens(cell) if "+" in cell else []
        start = next((place for place, piece in enumerate(pieces) if piece.kind != "word"), 0)
        found = prefix(pieces[start:], self.known) if start and is_sure(pieces, 0, len(pieces), self.known) else None
        return found[0] if found and is_sum(found[0]) and found[1] == len(pieces) - start else None


def _is_prose(cell: str) -> bool:
    """Return whether a cell is a sentence with a rough number: "touches about ~2% of all of it"."""
    return len(cell.split()) >= LEAST_PROSE and not _RELATES.search(cell)


def _shape(cell: str) -> Side | None:
    """Return the product of the sizes in a cell that is a shape, or None."""
    product = shape_in(cell)
    return None if product is None else Side(product)


def _are_near(one: Expression | None, other: Expression | None) -> bool:
    if not (isinstance(one, Number) and isinstance(other, Number)):
        return False
    return abs(one.value - other.value) * NEAR_FACTOR <= other.value


def _only_sizes(statement: Statement) -> bool:
    """Return whether an equation of a row only gives a size, "of hidden_size = 33", or bytes.

    Examples: "| Cache (seq=32,768) | 3 GiB |", "| Total | 15.71B | 31,412,968,448 B = 31.41 GB |".
    """
    sides = [side.expression for side in statement.sides]
    if statement.aside and len(sides) == 1 and isinstance(sides[0], Number):
        return True
    if all(side.unit == "bytes" and isinstance(side.expression, Number) for side in statement.sides):
        return True
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
