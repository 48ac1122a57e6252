"""Tell two sides that are not meant to be equal: a time, an equation to solve, two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import floor

from tallystick.answers.check.chain.binary import BILLION, LIKE, MEASURED, MOST_PREFIXES, PREFIXES, binary
from tallystick.answers.check.chain.rounding import SCALED
from tallystick.answers.check.chain.sides import has_names, is_share
from tallystick.derivations.arithmetic import (
    ASIDES,
    Expression,
    Name,
    Number,
    Operation,
    Undefined,
    Value,
    divides,
    evaluate,
    exactly,
)
from tallystick.derivations.slips import is_one_slip, is_typed_for, misrounds
from tallystick.derivations.statements import Side

TWO_NUMBERS = "sets one number equal to another, and computes nothing"

_LEAST_COMPARED = 1000  # two smaller numbers are sizes, shares or settings
_LEAST_WHOLE = 10**6  # a smaller number may be in thousands or millions of its unit
_LEAST_TYPED = 100  # two smaller numbers with one digit apart are not mistyped
_LEAST_CONVERTED = Fraction(3, 2)  # nearer sides are in one unit
_PER_BYTE = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(8))
# Bytes of a number in blocks of 32 that share a scale: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0
_LEAST_EACH = 64  # of something that a product counts
_IN_BLOCKS = tuple(Fraction(size, 32) for size in (18, 20, 22, 24, 34))
_LEAST_IN_BLOCKS = 10  # two digits
_KIBI = tuple((PREFIXES[1] / PREFIXES[0]) ** power for power in range(MOST_PREFIXES))  # of KB, MB and so on
_SCALES = (
    Fraction(1),
    *((mine / its) ** power for mine, its in product(PREFIXES, PREFIXES) for power in range(MOST_PREFIXES)),
    *(prefix**power for prefix in PREFIXES for power in range(1, MOST_PREFIXES + 1)),
)
_OPERATIONS = (2, 6)  # of each parameter
WIDTHS = (2, 4, 8)  # bytes of a number
_CONVERSIONS = frozenset(scale * width for scale, width in product(_SCALES, _PER_BYTE))
_MOST_DIGITS = 4  # of a number with its superscript lost, "224" for 2²⁴
_MOST_EXPONENT = 64
_MOST_PARTS = 8  # of a side in which one number may have lost its superscript
_LEAST_NEGATIVE = 100_000
_LEAST_DIGITS = 2  # of a computed fraction with one digit wrong
_NEAR_FRACTION = 8  # a result within an eighth of a computed fraction is meant as it
_ROUND = 2  # digits before the zeros of a round number
_FAR = 12  # two numbers with a larger ratio are no slip, but for a unit
_SWIGLU = 3  # the MLP's width is 8/3 of the model's, rounded up to a multiple of one of these
_MULTIPLES = (64, 128, 256)
_ROUND_OFF = Fraction(3, 200)  # three times half of the last digit of 2730.67
_GROUP = 1000  # of three digits behind a comma
_LEAST_GROUP = 100
_LEAST_WEIGHTS = 1_000_000  # a larger number is of weights, each of some bytes
TEN = Number(Fraction(10))


def unlike(left: Side, right: Side, values: tuple[Fraction, Fraction]) -> str:
    """Return why two unequal sides may both be right, or "" if they must be equal.

    Args:
        left: one side.
        right: its neighbour.
        values: the values of both.
    """
    one, other = left.expression, right.expression
    why = (
        _listed(one, other, *values)
        or _small(one, other, *values)
        or _converted(left, right, *values)
        or binary(left, right, *values)
    )
    if why:
        return why
    if _fused(left, right, *values):
        why = "is right if a multiplication with its addition is one operation, or two"
    elif _lost_powers(one, values[1]):
        why = "is right if a superscript was lost"
    elif _after_comma(one, values[1]):
        why = "is right if a comma separates two numbers"
    elif _restates(other, *values):
        why = "restates its factors as round numbers"
    elif (
        right.unit in MEASURED
        and left.unit != right.unit
        and isinstance(one, Name | Number)
        and not _rounds_slip(one, other)
    ):
        why = "gives parameters in another unit"  # "one expert (of one layer) = 352 MB"
    elif right.unit == "seconds":
        why = "gives a time: its unit is not followed"
    elif isinstance(other, Name) or (isinstance(other, Number) and not other.value):
        why = "relates variables, and states no number"  # "24·T·D = 12·T²", "a·x + b = 0"
    elif isinstance(one, Number) and isinstance(other, Number):
        why = _apart(left, right, one, other)
    elif _is_range(right, one, other):
        why = "states a range"
    elif isinstance(other, Operation) and other.symbols == ("^",) and other.parts[0] == TEN:
        why = "rounds to a power of ten"
    return why or _divided(one, right, *values) or _shaped(one, other)


def _rounds_slip(one: Expression, other: Expression) -> bool:
    """Return whether a number rounds another but for a digit: "157,286,400 ≈ 757M FLOPs"."""
    return isinstance(one, Number) and isinstance(other, Number) and misrounds(other, one.value)


def _listed(left: Expression, right: Expression, one: Fraction, other: Fraction) -> str:
    """Return why the numbers of two sides are not computed with: they are several, or shares."""
    if one < 1 <= other and isinstance(left, Operation) and set(left.symbols) == {"/"}:
        if len(left.symbols) > 1:
            return "lists several cases"  # "3/4/5 models ≈ 39/79/131 GB"
        if isinstance(right, Operation):
            return "states a share and a shape"  # "1/32 = 7 × 7" of an image
    if _adds_shares(left) and isinstance(right, Operation) and not _adds_shares(right):
        return "relates shares to the numbers that they are of"  # "10% + 5% = 24 + 12 = 36"
    return ""


def _adds_shares(side: Expression) -> bool:
    return isinstance(side, Operation) and all(map(is_share, side.parts))


def _small(left: Expression, right: Expression, one: Fraction, other: Fraction) -> str:
    """Return why values are no counts: one is not positive, or both are fractions of 1.

    Numbers with a result near to what they make, "0.90625^8 = 0.444", are computed all the same.
    """
    share = isinstance(right, Number) and right.rounded  # "= 12.5%"
    computed = isinstance(left, Operation) and not has_names(left)
    typed = isinstance(right, Number) and is_typed_for(right, one, least=_LEAST_DIGITS)  # "38.6M / 124M = 0.71"
    near = typed or abs(one - other) * _NEAR_FRACTION <= abs(one)
    if max(one, other) < 0 and computed and is_one_slip(str(-one), str(-other)) and -one >= _LEAST_NEGATIVE:
        return ""  # "32 × 2 × 4096 × (1024 - 4096) = -805,316,368"
    if min(one, other) <= 0 or (max(one, other) < 1 and not share and not (computed and near)):
        return "relates fractions, or numbers that are not positive, and counts nothing"
    return ""


def _fused(left: Side, right: Side, one: Fraction, other: Fraction) -> bool:
    """Return whether the sides count operations, and one twice as many: "512³ FLOPs ≈ 268M".

    Training takes six of each parameter: "7B × 2T tokens = 8.4 × 10²² FLOPs".
    """
    if not {"operations", "multiplications"} & {left.unit, right.unit}:
        return False
    low, high = sorted((one, other))
    return any(abs(high - times * low) <= LIKE * high for times in _OPERATIONS)


def _divided(left: Expression, right: Side, one: Fraction, other: Fraction) -> str:
    """Return why a quotient may be another number: it is cut, or taken less 1."""
    number = right.expression
    if _divides_whole(left, _width(number) or other):
        return "is right if its quotients are whole numbers"
    if _rounds_up(left, one, other) or _rounds_up(number, other, one):
        return "is right if its width is rounded up"
    if isinstance(number, Number) and is_share(number):
        gain = abs(abs(one - 1) - other) <= number.unit  # "4.8 / 3.35 = 43%"
        return "states by how much its ratio is above or below 1" if gain else ""
    return ""


def _rounds_up(side: Expression, third: Fraction, width: Fraction) -> bool:
    """Return whether a width is 8/3 of another one, rounded up: "2/3 × 4 × 4096 = 11008".

    The thirds may be decimals: "2730.67 ≈ 2816".
    """
    if third.denominator == 1 or width.denominator > 1:
        return False
    away = abs(third * _SWIGLU - round(third * _SWIGLU))
    return away <= (_ROUND_OFF if isinstance(side, Number) else 0) and any(
        0 < width - third < one and width % one == 0 for one in _MULTIPLES
    )


def _divides_whole(left: Expression, meant: Fraction) -> bool:
    """Return whether a side is right with each quotient cut: "(1080 / 16) × 60 = 67 × 60"."""
    try:
        return divides(left) and _cut(left).exact == meant
    except Undefined:
        return False


def _cut(side: Expression) -> Value:
    """Return the value of a side with each quotient of whole numbers cut."""
    if not isinstance(side, Operation):
        return evaluate(side, {})
    total = _cut(side.parts[0])
    for symbol, part in zip(side.symbols, side.parts[1:], strict=True):
        step = Operation((symbol,), (Number(total.exact), Number(_cut(part).exact)))
        total = evaluate(step, {})
        if symbol == "/":
            total = exactly(floor(total.exact))
    return total


def _restates(right: Expression, one: Fraction, other: Fraction) -> bool:
    """Return whether a product has round numbers for those before: "= 1000 × 10^12 × 0.4"."""
    if not isinstance(right, Operation) or abs(one - other) > LIKE * max(one, other):
        return False
    return _is_round(right)


def _is_round(side: Expression) -> bool:
    if isinstance(side, Operation):
        return all(map(_is_round, side.parts))
    return isinstance(side, Number) and len(str(side.value / side.unit).strip("0")) <= _ROUND


def _converted(left: Side, right: Side, one: Fraction, other: Fraction) -> str:
    """Return why sides differ by a conversion: one is of bytes, "100 KB = 100 × 1024 / 2"."""
    if not (one and other):
        return ""
    ratio = max(one, other) / min(one, other)
    number = right.expression
    if isinstance(number, Number) and number.unit == ratio == BILLION:
        return "counts bytes: B is their unit"  # "| 16 × 4 × 4 × 2 | 512 B |"
    scales = SCALED if right.unit in MEASURED and not left.unit and one < _LEAST_WHOLE else ()
    if any(abs(ratio / scale - 1) <= LIKE for scale in scales):
        return "converts to another unit"  # "3350 × 1 ≈ 3.35 TFLOPS", of 3,350 GB/s
    if "bytes" not in (left.unit, right.unit) or left.unit == right.unit:
        return ""
    if ratio < _LEAST_CONVERTED:
        return ""
    # "4096 × 8 × 2 = 35,536 bytes" has no unit to be off by.
    whole = isinstance(number, Number) and number.unit == 1 and not number.rounded
    like = 0 if whole and isinstance(left.expression, Operation) else LIKE
    each = whole and ratio.denominator == 1 and ratio >= _LEAST_EACH and right.unit == "bytes" and other > one
    # "595.15 - 570.76 = 24.39 GB"
    added = isinstance(left.expression, Operation) and left.expression.symbols[0] in "+-"
    counted = right.unit == "bytes" and (added or _ends_in_width(left.expression))
    conversions = _SCALES if counted else _CONVERSIONS
    near = (abs(ratio - conversion) <= like * ratio for conversion in conversions)
    blocks = not _ends_in_width(left.expression) and _is_in_blocks(one, number)
    # "48 layers × 4,096 tokens = 805,306,368 B" omits the bytes of each
    return "converts to another unit" if each or blocks or any(near) else ""


def _is_in_blocks(weights: Fraction, number: Expression) -> bool:
    """Return whether a number is the size of a matrix in blocks: "256 × 256 = 36 KB" of Q4_0."""
    if not isinstance(number, Number) or number.value < _LEAST_IN_BLOCKS * number.unit:
        return False
    ways = ((share, scale) for share in _IN_BLOCKS for scale in _KIBI)
    return any(abs(weights * share - number.value * scale) * 2 <= number.unit * scale for share, scale in ways)


def _ends_in_width(side: Expression) -> bool:
    """Return whether a product counts bytes itself: "2 × 28 × 256 × 4", "44,040,192 × 0.5625"."""
    if not (isinstance(side, Operation) and set(side.symbols) == {"*"}):
        return False
    first, *_, last = side.parts
    if len(side.parts) == 2 and not (isinstance(first, Number) and first.value >= _LEAST_WEIGHTS):
        return False
    return isinstance(last, Number) and (last.value in WIDTHS or (last.is_decimal and last.value < WIDTHS[-1]))


def _apart(left: Side, right: Side, one: Number, other: Number) -> str:
    slip = left.unit == "parameters" and other.rounded and is_typed_for(other, one.value)  # "124,439,808 ≈ 142M"
    cut = one.rounded and not other.rounded and 0 <= other.value - one.value < one.unit
    if cut or (left.unit and left.unit != right.unit and not slip):
        return "gives a number in another unit"  # "1 byte = 8 bits", "GPT-2 1.5B = 1,557,611,200"
    high = max(one.value, other.value)
    rough = right.loose or one.unit < 1 or other.unit < 1
    if rough and high < _LEAST_COMPARED:
        share = (
            is_share(other)
            and not is_share(one)
            and one.value < 1
            and is_typed_for(other, one.value, least=_LEAST_DIGITS)
        )
        return "" if share else "states two sizes"  # "50    ~1.2", but "0.3102 = 34.02%"
    ratio = high / min(one.value, other.value)
    if ratio > _FAR and not any(abs(ratio / unit - 1) <= LIKE for unit in (10, 100, 10**3, 10**6, 10**9)):
        return TWO_NUMBERS  # "3k = 8", to be solved for k
    if right.loose and _is_round(one) and _is_round(other):
        return TWO_NUMBERS  # "1000 words have ~5000 characters"
    exact = one.unit == other.unit == 1 and not (one.rounded or other.rounded)
    if exact and (high < _LEAST_TYPED or not is_one_slip(str(one.value), str(other.value))):
        return TWO_NUMBERS  # "BATCH_SIZE=4 # 2"
    return ""


def _is_range(right: Side, one: Expression, other: Expression) -> bool:
    """Return whether two powers of one base are the ends of a range: "2^-6 ~ 2^9"."""
    powers = [side for side in (one, other) if isinstance(side, Operation) and side.symbols == ("^",)]
    return right.loose and len(powers) == 2 and powers[0].parts[0] == powers[1].parts[0]


def _lost_powers(left: Expression, meant: Fraction) -> bool:
    """Return whether a side is right with its last digits as exponents: "163 - 1 = 4095"."""
    try:
        return any(evaluate(one, {}).exact == meant for one in _with_powers(left))
    except Undefined:
        return False


def _after_comma(left: Expression, meant: Fraction) -> bool:
    """Return whether a side is right with its first number cut at a comma: "K=32,128/32=4"."""
    if not isinstance(left, Operation) or has_names(left):
        return False
    first, *rest = left.parts
    if not (isinstance(first, Number) and first.unit == 1 and first.value > _GROUP):
        return False
    behind = first.value % _GROUP
    return behind >= _LEAST_GROUP and evaluate(left._replace(parts=(Number(behind), *rest)), {}).exact == meant


def _with_powers(side: Expression) -> Iterator[Expression]:
    """Yield a side with a number of two to four digits read as a power: 224 as 2²⁴."""
    if isinstance(side, Number):
        digits = str(side.value)
        if side.unit == 1 and not side.rounded and digits.isdecimal() and 1 < len(digits) <= _MOST_DIGITS:
            for cut in range(1, len(digits)):
                base, exponent = Fraction(int(digits[:cut])), Fraction(int(digits[cut:]))
                if base > 1 and 1 < exponent <= _MOST_EXPONENT and digits[cut] != "0":
                    yield Operation(("^",), (Number(base), Number(exponent)))
    elif isinstance(side, Operation) and len(side.parts) <= _MOST_PARTS:
        for place, part in enumerate(side.parts):
            for power in _with_powers(part):
                yield side._replace(parts=(*side.parts[:place], power, *side.parts[place + 1 :]))


def _shaped(left: Expression, right: Expression) -> str:
    """Return why a product may be no number: it is the shape of a matrix or of a window."""
    if any(shapes(left, right) for shapes in (_shapes, _begins_shape, _adds_shapes, _derives_shape)):
        return "multiplies matrices: these are their shapes"
    window = left._replace(symbols=("*",), parts=left.parts[:2]) if isinstance(left, Operation) else left
    return "compares two windows" if _width(window) and _width(right) else ""  # "3 × 3 × 2 = 5 × 5"


def _shapes(left: Expression, right: Expression) -> bool:
    """Return whether the sides are shapes of a product: "(512 × 64) × (64 × 512) = 512 × 512"."""
    if not (isinstance(left, Operation) and set(left.symbols) == {"*"} and isinstance(right, Operation)):
        return False
    pairs = [part.parts for part in (*left.parts, right) if isinstance(part, Operation) and part.symbols == ("*",)]
    return len(pairs) == len(left.parts) + 1 > 2 and (pairs[0][0], pairs[-2][1]) == pairs[-1]


def _adds_shapes(left: Expression, right: Expression) -> bool:
    """Return whether all addends and their sum have one shape: "2 × 8 + 2 × 8 = 2 × 8"."""
    return isinstance(left, Operation) and isinstance(right, Operation) and set(left.parts) == {right}


def _derives_shape(left: Expression, right: Expression) -> bool:
    """Return whether the size of a shape is derived behind it: "28 × 28 (32-5 + 1) = 28"."""
    if not (isinstance(left, Operation) and left.symbols[-1] in ASIDES and not has_names(left)):
        return False
    return isinstance(right, Number) and evaluate(left.parts[-1], {}).exact == right.value


def _width(side: Expression) -> Fraction | None:
    """Return the width of a square window, "13 × 13", or None."""
    if not (isinstance(side, Operation) and side.symbols == ("*",) and side.parts[0] == side.parts[1]):
        return None
    number = side.parts[0]
    return number.value if isinstance(number, Number) and number.value < _LEAST_COMPARED else None


def _begins_shape(left: Expression, right: Expression) -> bool:
    """Return whether a number is the first of a shape: "(3 × 2) = 3 samples, 2 features"."""
    small = isinstance(right, Number) and right.value < _LEAST_TYPED
    return small and isinstance(left, Operation) and left.symbols == ("*",) and left.parts[0] == right
