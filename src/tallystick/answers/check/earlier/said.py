"""What the words around a number say that it should be, if one digit of it is wrong.

Examples: "each 21,233,664, in total 63,700,992", "(16,384) … (36,864), together 53,248", and
"w1 = w2 = w3: 10.24M" above "total: 30.72M".
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import accumulate

from tallystick.answers.check.claims import Claim, is_whole
from tallystick.derivations.arithmetic import Number
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import SUBTOTAL, TOTAL, Statement

LEAST_DIGITS = 5  # of an exact number that is a sum but for one digit
LEAST_EACH = 10_000  # a smaller number may be a size
MOST_EQUAL = 12  # equal parts that one line counts together

_WRITTEN = r"(\d{1,3}(?:[,._]\d{3})+|\d{5,})"
_EACH = re.compile(
    rf"(?:各|每个|each|je(?:weils)?|cada|chacun\w*)\W*{_WRITTEN}[^\d\n]{{1,24}}{_WRITTEN}(?![\d.,]*\d)", re.IGNORECASE
)
_COUNT = re.compile(rf"(?<![\d.,*/^+-])(?<![*/^+-]\s){_WRITTEN}(?![\d.,]*\d)(?!\s?[*/^])")  # a result, not a factor
_NAMES = re.compile(r"\W*[A-Za-z]\w*(?:\s*=\s*[A-Za-z]\w*){1,7}\s*[:\uff1a]")


def said(statement: Statement, claim: Claim, before: tuple[Statement, Claim] | None) -> Fraction | None:
    """Return what a number should be by the words around it, or None if it may be right.

    Args:
        statement: the statement of the number.
        claim: its value.
        before: the preceding statement with its value, if any.
    """
    number = claim.side
    if not isinstance(number, Number):
        return None
    meant = [_equal_parts(*before)] if before is not None and TOTAL.search(statement.label) else []
    if is_whole(number) and len(str(number.value)) >= LEAST_DIGITS:
        meant += [_each(statement, claim), _in_line(statement, claim)]
    return next((one for one in meant if one is not None and is_typed_for(number, one)), None)


def _each(statement: Statement, claim: Claim) -> Fraction | None:
    """Return the multiple of X that is nearest to Y in "each X, in total Y"."""
    each = _EACH.search(statement.plain)
    if each is None:
        return None
    one, some = map(_number, each.groups())
    times = round(some / one) if one >= LEAST_EACH and some == claim.stated else 0
    return times * one if 1 < times <= MOST_EQUAL else None


def _in_line(statement: Statement, claim: Claim) -> Fraction | None:
    """Return the sum of the counts before a total in its sentence that is the total but a digit."""
    if not (TOTAL.search(statement.label) or SUBTOTAL.search(statement.label)):
        return None
    numbers = [_number(match[1]) for match in _COUNT.finditer(statement.plain)]
    if numbers.count(claim.stated) != 1:
        return None
    above = numbers[: numbers.index(claim.stated)][::-1]
    sums = list(accumulate(above))[1:]
    if claim.stated in sums:
        return None
    return next((one for one in sums if is_one_slip(str(claim.stated), str(one))), None)


def _equal_parts(statement: Statement, claim: Claim) -> Fraction | None:
    """Return the sum of equal parts: three times 10.24M for "w1 = w2 = w3: 10.24M"."""
    names = _NAMES.match(statement.plain)
    return claim.stated * (names[0].count("=") + 1) if names is not None and claim.right else None


def _number(written: str) -> Fraction:
    return Fraction(re.sub(r"\D", "", written))
