"""The value of each statement, stated and true, and the verdict on each equation: plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from tallystick.answers.check.quantities import Quantity
from tallystick.answers.check.terms import Term
from tallystick.derivations.arithmetic import Expression, Number, Value, exactly
from tallystick.derivations.statements import TOTAL, Statement

_ADAPTERS = re.compile(r"(?<![^\W_])(?:q?lora|adapt(?:er|ador|ateur)\w*)(?![^\W_])", re.IGNORECASE)
_MEASURES = re.compile(
    r"\b(?:bytes?|memory|[KMG]i?B|flops?|macs?|cache|gradients?|optimi[sz]er|activations?|seconds|gpus?)\b",
    re.IGNORECASE,
)

_UNREAD = exactly(0)
MOST_BEHIND = 2  # words behind "Total:" that leave its number the total


@dataclass(frozen=True)
class Equation:
    """Two sides of a chain that stand next to each other.

    Numbers are exact: integers where they are whole. An equation that is right in itself and uses a
    wrong number of an earlier line is `correct`, and `carried` is by how much the earlier error
    makes it too large.
    """

    line: int
    last_line: int  # where an equation over several lines ends
    text: str
    left: int | float
    right: int | float
    correct: bool
    should_be: int | float | None  # what both sides would be, were they right; None where they are
    carried: int | float
    matches: str | None  # what has that number of parameters in the model
    names: tuple[str, ...]  # of its tensors, with * for the numbers of their layers
    label_names: str | None = None  # what its label names, where that is another number, and why
    plain: str = ""  # the text without its markup


@dataclass
class Claim:
    """What a statement comes to: as written, and with the errors of earlier lines and its own
    corrected.
    """

    stated: Fraction
    true: Fraction
    expression: Expression | None  # its first side that computes something
    side: Expression  # the one that `stated` is the value of
    asides: bool = False
    term: Term | None = None
    users: list[int] = field(default_factory=list)  # the later statements that go on from it
    rounded: bool = False  # what it says stands behind ≈
    defines: bool = False  # a variable, as one plain number
    right: bool = True  # each of its sides agrees with the next
    match: Quantity | None = None
    carried: Fraction = Fraction(0)  # what errors of earlier lines make of it
    written: Value = _UNREAD  # its number, with what the rounding of its digits leaves open
    adds: bool = False  # whether it may be an addend of a later sum

    @property
    def is_rounded(self) -> bool:
        """Whether its number is rounded, or said to be approximate."""
        return self.rounded or not is_whole(self.side)

    @property
    def error(self) -> Fraction:
        """By how much errors of arithmetic, its own and earlier ones, make it too large."""
        return self.carried if self.right else self.stated - self.true

    @property
    def used(self) -> bool:
        """Whether a later statement goes on from it."""
        return bool(self.users)


def is_total(statement: Statement) -> bool:
    """Whether a statement calls itself a total of parameters."""
    words = statement.label or statement.name or statement.heading
    said = words.rpartition(":")[2]
    if len(said.split()) > MOST_BEHIND and not re.search(r"[-+*/=]", said):
        words = said  # "Total: of these the matrix of the layer (64 × 10" is of the matrix
    return bool(TOTAL.search(words) or statement.name == "N") and not measures(statement)


def measures(statement: Statement) -> bool:
    """Whether a statement is about bytes, operations or adapters, not parameters of the model."""
    return is_in_bytes(statement) or is_of_adapters(statement)


def is_in_bytes(statement: Statement) -> bool:
    """Whether it is about bytes or operations."""
    return _MEASURES.search(f"{statement.label} {statement.clause}") is not None


def is_of_adapters(statement: Statement) -> bool:
    """Whether its words, or those of its heading, speak of adapters."""
    return _ADAPTERS.search(f"{statement.label} {statement.clause} {statement.heading}") is not None


def is_whole(expression: Expression) -> bool:
    """Whether a side is one number, written to its last digit."""
    return isinstance(expression, Number) and not expression.rounded and expression.unit == 1


def as_number(value: Fraction) -> int | float:
    """An integer where it is one."""
    return int(value) if value.denominator == 1 else float(value)
