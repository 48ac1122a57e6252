"""Read a matrix with a number of bytes: its numbers are stored in a format, named or not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.answers.check.chain.binary import MEASURED
from tallystick.derivations.arithmetic import Expression, Number, Operation
from tallystick.derivations.statements import Side, Statement

NEAR_BYTES = Fraction(3, 100)  # "= 115 MB" of 117,440,512 bytes
LEAST_SIZE = 16  # of a matrix; a smaller factor may be the bytes of each number
_WIDTHS = {
    Fraction(2): r"(?:b?fp?|bfloat|float)_?16|half precision",
    Fraction(4): r"(?:fp|float|f)_?32",
    Fraction(1): r"(?:u?int|fp)_?8",
    Fraction(1, 2): r"(?:u?int|fp|nf)_?4",
}
_FORMATS = {width: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for width, words in _WIDTHS.items()}


def stored_in_bytes(statement: Statement, sides: Sequence[Side]) -> Iterator[list[Side]]:
    """Yield a chain with the bytes of its matrix, in each format that the line names, else in any.

    Example: "12288 × 49152 = 1.2 GB" has two bytes for each number, as "(fp16)" would say.
    """
    first, last = sides[0], sides[-1]
    matrix = first.expression
    if len(sides) != 2 or last.unit != "bytes" or first.unit in MEASURED:
        return
    if isinstance(matrix, Operation) and matrix.symbols == ("*",) and all(map(_is_size, matrix.parts)):
        for width in _named(statement) or _FORMATS:
            both = Operation(("*",), (matrix, Number(width)))
            yield [first._replace(expression=both, unit="bytes"), last]


def _is_size(factor: Expression) -> bool:
    return isinstance(factor, Number) and not factor.rounded and factor.value >= LEAST_SIZE


def _named(statement: Statement) -> list[Fraction]:
    return [width for width, pattern in _FORMATS.items() if pattern.search(statement.plain)]
