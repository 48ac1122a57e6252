"""Tell two sides that are not meant to be equal: a time, an equation to solve, two sizes."""

from __future__ import annotations

from fractions import Fraction

from tallystick.derivations.arithmetic import Expression, Name, Number, Operation
from tallystick.derivations.statements import Side

_LEAST_COMPARED = 1000  # two smaller numbers are sizes, shares or settings
_TEN = Number(Fraction(10))

_CONVERTED = ("bytes", "operations", "multiplications")


def unlike(left: Side, right: Side) -> str:
    """Return why two unequal sides may both be right, or "" if they must be equal."""
    one, other = left.expression, right.expression
    why = ""
    if right.unit in _CONVERTED and left.unit != right.unit and isinstance(one, Name | Number):
        why = "gives parameters in another unit"  # "one expert (of one layer) = 352 MB"
    elif right.unit == "seconds":
        why = "gives a time: its unit is not followed"
    elif isinstance(other, Name) or (isinstance(other, Number) and not other.value):
        why = "relates variables, and states no number"  # "24·T·D = 12·T²", "a·x + b = 0"
    elif isinstance(one, Number) and isinstance(other, Number):
        why = _apart(left, right, one, other)
    elif isinstance(other, Operation) and other.symbols == ("^",) and other.parts[0] == _TEN:
        why = "rounds to a power of ten"
    elif _shapes(one, other):
        why = "multiplies matrices: these are their shapes"
    return why


def _apart(left: Side, right: Side, one: Number, other: Number) -> str:
    if left.unit and left.unit != right.unit:
        return "gives a number in another unit"  # "1 byte = 8 bits"
    rough = right.loose or one.unit < 1 or other.unit < 1
    return "states two sizes" if rough and max(one.value, other.value) < _LEAST_COMPARED else ""  # "50    ~1.2"


def _shapes(left: Expression, right: Expression) -> bool:
    """Return whether the sides are shapes of a product: "(512 × 64) × (64 × 512) = 512 × 512"."""
    if not (isinstance(left, Operation) and set(left.symbols) == {"*"} and isinstance(right, Operation)):
        return False
    pairs = [part.parts for part in (*left.parts, right) if isinstance(part, Operation) and part.symbols == ("*",)]
    return len(pairs) == len(left.parts) + 1 > 2 and (pairs[0][0], pairs[-2][1]) == pairs[-1]
