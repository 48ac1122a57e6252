"""Judge the shares of a total: "| Attention | 28,348,416 | 22.8% |", "MLP: 56.6M (45.5%)"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from tallystick.answers.check.chain.sides import is_share
from tallystick.answers.check.claims import Claim, as_number, is_total, is_whole, lone, of_line
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import Number, Value, decimal
from tallystick.derivations.expressions.tokens import tokens
from tallystick.derivations.slips import is_typed_for

LEAST_RIGHT = 2  # shares of one total that show what they are of
LEAST_ROWS = 3  # shares of one total that prove another one of it wrong
LEAST_DIGITS = 2  # of a share that is another but for one
LEAST_OFF = 2  # units of its last digit; a share of a rounded total may be one off
MOST_BETWEEN = 3  # lines from one share to the next of the same list
MOST_LINE = 10_000  # characters
MOST_WHOLES = 20  # totals of a text that a share may be of
WHOLE = 100
_NUMBER = r"\d[\d,._]{0,20}(?:\s?[KMBT])?(?![\w.,]*\d)"
# "= 38.6M (31% of 124M total)"
_STATED = re.compile(
    rf"[=≈]\s*[~≈*`$]*\s?(?P<part>\d[\d.]{{0,9}}\s?[KMBT]|\d{{1,3}}(?:,\d{{3}}){{1,4}})(?![\w.,]*\d)[*`$]*\s{{0,3}}(?:param(?:eter)?s\s?)?(?:[(\uff08]|[=≈,]\s)[~≈*`]*\s?(?P<digits>\d{{1,3}}(?:[.,]\d{{1,3}})?)\s?\\?%[*`]*"
    rf"\s(?:of|von|de)\s(?:the\s|all\s)?[~≈]?[*`]*(?P<whole>{_NUMBER})(?!\s?[KMGT]?i?B\b)"
)
_SHARE = re.compile(r"(?<![\w.,+-])(?P<digits>\d{1,3}(?:[.,]\d{1,3})?)\s?\\?%")
_OF_PART = re.compile(
    r"%\s(?:of|von|de|du|des|из)\s(?!(?:the |all |its )?(?:total|whole|all|model|parameters|params|entire)\b)(?:the |a |one |each )?(?:\d{1,3} )?[^\W\d]"
    r"|占(?!总|全|整|模型|參|参)[^%。,，(（]{1,20}的\s?[~≈约]?\s?\d",
    re.IGNORECASE,
)


class _Share(NamedTuple):
    """A line with one percentage, and the numbers that this may be of."""

    line: int
    percent: Number
    numbers: tuple[Claim, ...]
    of_part: bool = False  # "17% of 16 layers", not of the total

    def of(self, whole: Claim) -> Value | None:
        """Return the share that the line's only number of a kind is of a total, in percent."""
        same = [one for one in self.numbers if one.kind == whole.kind and 0 < one.stated <= whole.stated]
        if len(same) != 1 or whole.written.low <= 0:
            return None
        exact, low, high = same[0].written
        return Value(WHOLE * exact / whole.stated, WHOLE * low / whole.written.high, WHOLE * high / whole.written.low)

    def misses(self, share: Value, units: int = 1) -> bool:
        """Return whether the percentage is some units of its last digit off a share, or more."""
        off = max(share.low - self.percent.value, self.percent.value - share.high)
        return off >= units * self.percent.unit

    def meets(self, share: Value | None) -> bool:
        """Return whether the percentage rounds or cuts a share."""
        return share is not None and not self.misses(share)


def judge_shares(judge: Judge) -> None:
    """Record the shares that are right, and those with a digit wrong in a list of right ones."""
    _judge_stated(judge)
    if not (shares := _shares(judge)):
        return
    judged, wholes = judge.numbers(), _wholes(judge)
    for rows in _lists(shares):
        for row, share, right in _verdicts(rows, wholes):
            if (row.line, as_number(row.percent.value)) not in judged:
                text = judge.derivation.lines[row.line - 1].strip()
                stated = row.percent.value
                judge.equations.append(of_line(row.line, text, text, share, stated, right=right, percent=True))


def _judge_stated(judge: Judge) -> None:
    """Record the shares whose line has both of their numbers: "38.6M (31% of 124M)"."""
    for line, text in enumerate(judge.derivation.lines, 1):
        for found in _STATED.finditer(text) if "%" in text and len(text) <= MOST_LINE else ():
            part, whole = (_claim(found[name]) for name in ("part", "whole"))
            row = _Share(line, decimal(found["digits"]), (part,) if part else ())
            share = row.of(whole) if whole else None
            if share is not None:
                right = not row.misses(share, LEAST_OFF)
                plain, stated = text.strip(), row.percent.value
                judge.equations.append(of_line(line, plain, plain, share.exact, stated, right=right, percent=True))


def _claim(text: str) -> Claim | None:
    """Return a number with its letter, or None."""
    found = tokens(text)
    return lone(found[0].number) if len(found) == 1 and found[0].number is not None else None


def _shares(judge: Judge) -> list[_Share]:
    """Return the lines with one percentage and a number."""
    found = ((line, list(_SHARE.finditer(text))) for line, text in enumerate(judge.derivation.lines, 1) if "%" in text)
    lines = {line: percents[0] for line, percents in found if len(percents) == 1}
    parts = {line for line in lines if _OF_PART.search(judge.derivation.lines[line - 1])}
    numbers = defaultdict[int, list[Claim]](list)
    for statement, claim in zip(judge.derivation.statements, judge.claims, strict=True) if lines else ():
        if claim is not None and statement.line in lines and not is_share(statement.sides[-1].expression):
            numbers[statement.line].append(claim)
    return [
        _Share(line, decimal(lines[line]["digits"]), tuple(claims), line in parts)
        for line, claims in sorted(numbers.items())
    ]


def _lists(shares: Sequence[_Share]) -> Iterator[list[_Share]]:
    """Yield the shares of each list or table."""
    rows = [shares[0]]
    for share in shares[1:]:
        if share.line - rows[-1].line > MOST_BETWEEN:
            yield rows
            rows = []
        rows.append(share)
    yield rows


def _wholes(judge: Judge) -> list[Claim]:
    """Return the totals of a text, the last first, and the model's."""
    pairs = zip(judge.derivation.statements, judge.claims, strict=True)
    found = [claim for statement, claim in pairs if claim is not None and is_total(statement)][::-1][:MOST_WHOLES]
    return [*found, lone(Number(Fraction(judge.quantities.total)))] if judge.quantities else found


def _verdicts(rows: Sequence[_Share], wholes: Sequence[Claim]) -> Iterator[tuple[_Share, Fraction, bool]]:
    """Yield the rows of a list with the shares of its total, and whether they are right."""
    hundred = (one for row in rows if row.percent.value == WHOLE for one in row.numbers)
    for whole in (*hundred, *wholes):
        right = [row for row in rows if row.meets(row.of(whole))]
        exact = is_whole(whole.side) and all(is_whole(one.side) for row in rows for one in row.numbers)
        complete = exact and sum(one.stated for row in rows for one in row.numbers) == whole.stated
        if len(right) < (1 if complete else LEAST_RIGHT if exact else max(LEAST_RIGHT, min(LEAST_ROWS, len(rows)))):
            continue
        for place, row in enumerate(rows):
            if (share := row.of(whole)) is None:
                continue
            off = (exact or len(right) >= LEAST_ROWS) and row.misses(share, LEAST_OFF)
            typed = off and is_typed_for(row.percent, share.exact, least=LEAST_DIGITS)
            carries = row.percent.value in _sums(rows[:place])  # a wrong one
            typed = typed and not (row.of_part or carries)
            if row in right or (typed and not any(row.meets(row.of(other)) for other in wholes)):
                yield row, share.exact, row in right
        return


def _sums(rows: Sequence[_Share]) -> list[Fraction]:
    """Return the sums of the last percentages: of the last two, the last three and so on."""
    return list(accumulate(row.percent.value for row in reversed(rows)))[1:]
