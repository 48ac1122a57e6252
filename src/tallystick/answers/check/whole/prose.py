"""Find the total that a sentence states, in a text without any other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

from tallystick.answers.check.claims import lone
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import Number, alone
from tallystick.derivations.statements import Statement

LEAST_SHARE = 30  # a number with fewer digits, such as 7B, is too vague
LEAST_UNQUOTED = 500  # a vaguer one, such as 124M, may be quoted
MOST_LEFT_OUT = Fraction(1, 1000)  # of a model: norms, biases, a router
MOST_PARTS = 12  # the largest, of which some are added
NEARLY = Fraction(1, 20)  # between a rounded total and its parts
MOST_GIVEN = 2  # numbers in the sentences up to a total that is only given

# "→ ≈ 6.7B", "so we arrive at 3.1B"
_CONCLUDES = re.compile(
    r"\A\s*(?:→|[-=]{1,2}>|⇒|[=≈](?!.*%))"
    r"|\b(?:comes? to|arrives? at|adds? up|sums? (?:up )?to|amounts? to|gives|ergibt|kommt auf|donne|arrive à|приходим к|выходит|получ\w+)\b|得到|得出|加起来",
    re.IGNORECASE,
)


def in_prose(judge: Judge, *, rounded: bool = True) -> int | None:
    """Return the number in a sentence that is the model's total, perhaps rounded, or None.

    It serves a text without a stated total. The sentence is added to the statements.

    Args:
        judge: the statements of the text, judged.
        rounded: whether a rounded number will do.
    """
    total = judge.quantities.total if judge.quantities else 0
    # A number above all equations is given, not derived.
    first = min((equation.line for equation in judge.equations), default=0)
    found = [
        statement
        for statement in judge.derivation.prose
        if (statement.line >= first or _follows(judge, statement, total))
        and (value := alone(_number(statement), loose=False)) is not None
        and (value.low <= total <= value.high or (rounded and value.is_exact and _is_nearly(value.exact, total)))
        and (value.high - value.low) * LEAST_SHARE <= total
        and (rounded or value.is_exact)
        and (
            (value.high - value.low) * LEAST_UNQUOTED <= total
            or _CONCLUDES.search(statement.text)
            or _is_derived(judge, value.exact)
        )
    ]
    if not found:
        return None
    best = min(found, key=lambda statement: _away(statement, total))
    judge.derivation = judge.derivation._replace(statements=(*judge.derivation.statements, best))
    judge.claims.append(lone(_number(best)))
    return len(judge.claims) - 1


def nearly_add_up(parts: Iterable[Fraction], total: Fraction, within: Fraction) -> bool:
    """Return whether one, two or three of the largest parts give a total.

    Args:
        parts: numbers of a text.
        total: what they may add up to.
        within: the share of the total that they may miss it by.
    """
    largest = sorted(parts, reverse=True)[:MOST_PARTS]
    sums = (sum(added) for count in (1, 2, 3) for added in combinations(largest, count))
    return any(abs(one - total) <= within * total for one in sums)


def _is_derived(judge: Judge, number: Fraction) -> bool:
    """Return whether some smaller numbers of a text add up to another one, nearly."""
    return nearly_add_up(
        {one.stated for one in judge.claims if one and one.adds and one.stated < number}, number, NEARLY
    )


def _follows(judge: Judge, statement: Statement, total: int) -> bool:
    """Return whether an exact total in a sentence follows several other numbers in sentences."""
    before = [one for one in judge.derivation.prose if one.line <= statement.line]
    return _number(statement).value == total and len(before) > MOST_GIVEN


def _is_nearly(number: Fraction, total: int) -> bool:
    """Return whether a number to its last digit leaves out only norms, biases or a router."""
    return abs(number - total) <= MOST_LEFT_OUT * total


def _away(statement: Statement, total: int) -> Fraction:
    """Return how far a number in a sentence is from the model's total; rounded ones are further."""
    number = _number(statement)
    return abs(number.value - total) + (total if number.rounded else 0)


def _number(statement: Statement) -> Number:
    number = statement.sides[0].expression
    assert isinstance(number, Number)  # noqa: S101
    return number
