"""Judge table rows in which a column multiplies or adds others: "| 768 | 50,257 | 38,597,376 |"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations, islice
from typing import NamedTuple

from tallystick.answers.check.claims import of_line
from tallystick.answers.check.equations import Judge
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Expression, Number, Operation, Value, alone, evaluate, exactly
from tallystick.derivations.slips import LEAST_TYPED, is_typed_for
from tallystick.derivations.statements import Row, Side

LEAST_ROWS = 3  # that have the product, and are unlike each other
LEAST_VARIED = Fraction(5, 4)  # the largest of them by the smallest
MOST_BETWEEN = 3  # lines from one to the next; a head and its rule take more
WIDE = 8  # the largest by the smallest of rows that need no further one to prove a ratio
SHORT = 2  # digits of a number that is mistyped, if more rows than that are right
MOST_WRONG = 1  # rows with a slip
MOST_OTHERS = 3  # products that explain a column whose first one has a wrong row
MOST_COLUMNS = 8  # of a table


class _Cells(NamedTuple):
    """A row of a table: its cells, and the positive numbers in them, within their rounding."""

    row: Row
    values: tuple[Value | None, ...]

    def number(self, column: int) -> Number | None:
        """Return the number that stands alone in a column, as written."""
        expression = self._expression(column)
        return expression if isinstance(expression, Number) else None

    def value(self, column: int) -> Value | None:
        """Return the value of a column, or None if it has none."""
        return self.values[column] if column < len(self.values) else None

    def has_shape(self, column: int) -> bool:
        """Return whether a column has the product of a shape."""
        return isinstance(self._expression(column), Operation)

    def _expression(self, column: int) -> Expression | None:
        side = self.row.cells[column] if column < len(self.row.cells) else None
        return None if side is None else side.expression


class _Relation(NamedTuple):
    """A column that is the product of others and of a number that rows share, or their sum."""

    column: int
    others: tuple[int, ...]
    shared: Value = exactly(1)
    adds: bool = False
    rows: int = 0  # in which it holds
    wrong: int = 0  # in which it does not

    def of(self, cells: _Cells) -> Value | None:
        """Return what a row's number must be, or None if another one of the row is missing."""
        values = [cells.value(column) for column in self.others]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None
        return reduce(Value.plus if self.adds else Value.times, found, self.shared)

    def keeps(self, cells: _Cells) -> bool | None:
        """Return whether a row's number is what it must be, or None if a number is missing."""
        value, stated = self.of(cells), cells.value(self.column)
        return value.meets(stated) if value is not None and stated is not None else None

    def mistyped(self, cells: _Cells) -> dict[int, Fraction]:
        """Return the columns with a digit wrong in a row, each with the right number."""
        meant, stated = self.of(cells), cells.value(self.column)
        found = {self.column: meant.exact} if meant is not None else {}
        if stated is not None and meant is not None:
            others = ((one, value.exact) for one in self.others if (value := cells.value(one)) is not None)
            off, times = stated.exact - meant.exact, stated.exact / meant.exact
            found |= {one: number + off if self.adds else number * times for one, number in others}
        least = SHORT if self.rows >= LEAST_ROWS else LEAST_TYPED
        numbers = ((column, cells.number(column), right) for column, right in found.items() if right > 0)
        return {
            column: right
            for column, number, right in numbers
            if number is not None and is_typed_for(number, right, least=least if column == self.column else LEAST_TYPED)
        }


def judge_tables(judge: Judge) -> None:
    """Record the products and sums in the rows of tables that no equation states.

    A row is wrong if the others have the product, and it has it but for a digit.
    """
    judged = judge.numbers()
    for rows in _tables(judge.derivation.rows):
        table = [_Cells(row, tuple(map(_value, row.cells))) for row in rows]
        relations = list(_relations(table))
        for cells in table:
            row = cells.row
            kept = {relation.column: relation for relation in reversed(relations) if relation.keeps(cells)}
            for column, relation in sorted(kept.items()):
                value, number = relation.of(cells), cells.number(column)
                if value is not None and number is not None and (row.line, number.value) not in judged:
                    judge.equations.append(
                        of_line(row.line, row.text, row.plain, value.exact, number.value, right=True)
                    )
            wrong = [relation.mistyped(cells) for relation in relations if relation.column not in kept]
            column, right = _blamed(wrong)
            number = cells.number(column)
            if right and number is not None and (row.line, number.value) not in judged:
                judge.equations.append(of_line(row.line, row.text, row.plain, right, number.value, right=False))


def _blamed(wrong: Sequence[dict[int, Fraction]]) -> tuple[int, Fraction]:
    """Return the column whose number most relations of a row call wrong, and the right number.

    Return the number 0 if no relation is wrong but for a digit.
    """
    times = Counter(column for relation in wrong for column in relation)
    if not times:
        return 0, Fraction(0)
    column, _ = times.most_common(1)[0]
    return column, next(relation[column] for relation in wrong if column in relation)


def _tables(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each table; a row between them may have fewer numbers."""
    table: list[Row] = []
    for row in rows:
        if table and row.line - table[-1].line > MOST_BETWEEN:
            yield table
            table = []
        table.append(row)
    yield table


def _relations(rows: Sequence[_Cells]) -> Iterator[_Relation]:
    """Yield the columns that are sums or products of two others, or of one and a number.

    "| 1024 | 0.56 MB | 34.2 MB |" may multiply the first number or the rounded second one.
    """
    columns = range(min(MOST_COLUMNS, max((len(row.values) for row in rows), default=0)))
    for column in columns:
        pairs = list(combinations((one for one in columns if one != column), 2))
        products = (_held(_Relation(column, pair), rows) for pair in pairs)
        shares = (
            # A ratio comes from a row; a shape is a row's own product.
            _held(_Relation(column, (one,), times), rows, given=int(times.exact != 1))
            for one in columns[:column]
            for times in _ratios(rows, one, column)
        )
        added = ((pair, exactly(0), 0) for pair in pairs)
        more = (((one,), less, 1) for one in columns[:column] for less in _differences(rows, one, column))
        sums = (
            _held(_Relation(column, others, shared, adds=True), rows, given=given)
            for others, shared, given in chain(added, more)
        )
        ways = filter(None, chain(products, shares))
        if first := next(ways, None):
            yield first
            if first.wrong:
                yield from islice(ways, MOST_OTHERS)
        if found := next(filter(None, sums), None):
            yield found


def _differences(rows: Sequence[_Cells], one: int, other: int) -> list[Value]:
    """Return what rows add to a column, the most precise first, as the weights to each cache."""
    values = ((cells.value(one), cells.value(other)) for cells in rows)
    pairs = [(less, more) for less, more in values if less is not None and more is not None and less.high < more.low]
    found = [Value(more.exact - less.exact, more.low - less.high, more.high - less.low) for less, more in pairs]
    return sorted(found, key=lambda more: more.high - more.low)[: MOST_WRONG + 1]


def _ratios(rows: Sequence[_Cells], one: int, other: int) -> list[Value]:
    """Return the numbers by which rows multiply a column, the most precise first.

    One of them may come from the row with the slip.
    """
    values = ((cells.value(one), cells.value(other)) for cells in rows)
    pairs = [(less, more) for less, more in values if less is not None and more is not None and less.low > 0]
    computed = any(cells.has_shape(one) for cells in rows)
    ratios = [Value(more.exact / less.exact, more.low / less.high, more.high / less.low) for less, more in pairs]
    ratios.sort(key=lambda ratio: (ratio.high - ratio.low) / ratio.exact)
    return [ratio for ratio in ratios[: MOST_WRONG + 1] if computed or ratio.exact != 1]


def _held(relation: _Relation, rows: Sequence[_Cells], *, given: int = 0) -> _Relation | None:
    """Return a relation that holds in all rows but one, and differs from row to row, else None.

    Args:
        relation: the columns.
        rows: the rows of the table.
        given: how many rows have it anyway.
    """
    wrong, sizes = 0, set[Fraction]()
    for cells in rows:
        current().step()
        stated, kept = cells.value(relation.column), relation.keeps(cells)
        if kept and stated is not None:
            sizes.add(stated.exact)
        wrong += kept is False
        if wrong > MOST_WRONG:
            return None
    if len(sizes) < LEAST_ROWS:
        return None
    # Scores of 40.0 to 40.5 are a column's multiple by chance.
    varied = max(sizes) > LEAST_VARIED * min(sizes)
    wide = max(sizes) >= WIDE * min(sizes)
    enough = len(sizes) >= LEAST_ROWS + given or wide
    return relation._replace(rows=len(sizes) - given + wide, wrong=wrong) if varied and enough else None


def _value(side: Side | None) -> Value | None:
    """Return the positive number of a cell, with the bounds of its rounding, or None."""
    if side is None:
        return None
    found = alone(side.expression, loose=side.loose) or evaluate(side.expression, {})
    return found if found.exact > 0 else None
