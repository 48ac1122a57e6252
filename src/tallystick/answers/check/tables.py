"""Judge table rows in which a column multiplies others: "| 768 | 50,257 | 38,597,376 |"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from tallystick.answers.check.claims import Equation, as_number
from tallystick.answers.check.equations import Judge
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Number, Operation, Value, alone, evaluate, exactly
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import Row

LEAST_ROWS = 3  # that have the product, and are unlike each other
LEAST_VARIED = Fraction(5, 4)  # the largest of them by the smallest
MOST_BETWEEN = 3  # lines from one to the next; a head and its rule take more
MOST_WRONG = 1  # rows with a slip
MOST_COLUMNS = 8  # of a table


class _Product(NamedTuple):
    """A column that is the product of others, and of a number that all rows share."""

    column: int
    factors: tuple[int, ...]
    times: Value = exactly(1)

    def of(self, row: Row) -> Value | None:
        """Return the product in a row, or None if a factor is not a number."""
        total = self.times
        for column in self.factors:
            factor = _value(row, column)
            if factor is None:
                return None
            total = total.times(factor)
        return total


def judge_tables(judge: Judge) -> None:
    """Record the products in the rows of tables that no equation states.

    A row is wrong if the others have the product, and it has it but for a digit.
    """
    judged = judge.numbers()
    for rows in _tables(judge.derivation.rows):
        for product in _products(rows):
            for row in rows:
                value, stated, number = product.of(row), _value(row, product.column), _number(row, product.column)
                if value is None or stated is None or number is None or (row.line, number.value) in judged:
                    continue
                fits = value.meets(stated)
                if fits or is_typed_for(number, value.exact):
                    judge.equations.append(_equation(row, value.exact, number.value, fits))


def _tables(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each table; a row between them may have fewer numbers."""
    table: list[Row] = []
    for row in rows:
        if table and row.line - table[-1].line > MOST_BETWEEN:
            yield table
            table = []
        table.append(row)
    yield table


def _products(rows: Sequence[Row]) -> Iterator[_Product]:
    """Yield the columns of a table that are products: of two others, or of one and a number."""
    columns = range(min(MOST_COLUMNS, max((len(row.cells) for row in rows), default=0)))
    for column in columns:
        pairs = combinations((one for one in columns if one != column), 2)
        found = next((one for pair in pairs if _holds(one := _Product(column, pair), rows)), None)
        shares = (_Product(column, (one,), times) for one in columns[:column] for times in _ratios(rows, one, column))
        # A ratio comes from a row; a shape is a row's own product.
        found = found or next((one for one in shares if _holds(one, rows, given=int(one.times.exact != 1))), None)
        if found is not None:
            yield found


def _ratios(rows: Sequence[Row], one: int, other: int) -> list[Value]:
    """Return the numbers by which rows multiply a column, the most precise first.

    One of them may come from the row with the slip.
    """
    values = ((_value(row, one), _value(row, other)) for row in rows)
    pairs = [(less, more) for less, more in values if less is not None and more is not None and less.low > 0]
    computed = any(_has_shape(row, one) for row in rows)
    ratios = [Value(more.exact / less.exact, more.low / less.high, more.high / less.low) for less, more in pairs]
    ratios.sort(key=lambda ratio: (ratio.high - ratio.low) / ratio.exact)
    return [ratio for ratio in ratios[: MOST_WRONG + 1] if computed or ratio.exact != 1]


def _holds(product: _Product, rows: Sequence[Row], *, given: int = 0) -> bool:
    """Return whether all rows but one have a product that differs from row to row.

    Args:
        product: the columns.
        rows: the rows of the table.
        given: how many rows have it anyway.
    """
    wrong, sizes = 0, set[Fraction]()
    for row in rows:
        current().step()
        value, stated = product.of(row), _value(row, product.column)
        if value is None or stated is None:
            continue
        if value.meets(stated):
            sizes.add(stated.exact)
        else:
            wrong += 1
        if wrong > MOST_WRONG:
            return False
    # Scores of 40.0 to 40.5 are a column's multiple by chance.
    return len(sizes) >= LEAST_ROWS + given and max(sizes) > LEAST_VARIED * min(sizes)


def _number(row: Row, column: int) -> Number | None:
    side = row.cells[column] if column < len(row.cells) else None
    return side.expression if side is not None and isinstance(side.expression, Number) else None


def _value(row: Row, column: int) -> Value | None:
    """Return a positive number of a row, with the bounds of its rounding, or None."""
    side = row.cells[column] if column < len(row.cells) else None
    if side is None:
        return None
    found = alone(side.expression, loose=side.loose) or evaluate(side.expression, {})
    return found if found.exact > 0 else None


def _has_shape(row: Row, column: int) -> bool:
    side = row.cells[column] if column < len(row.cells) else None
    return side is not None and isinstance(side.expression, Operation)


def _equation(row: Row, product: Fraction, stated: Fraction, correct: bool) -> Equation:
    return Equation(
        row.line,
        row.line,
        row.text,
        as_number(product),
        as_number(stated),
        correct,
        None if correct else as_number(product),
        carried=0,
        matches=None,
        names=(),
        plain=row.plain,
    )
