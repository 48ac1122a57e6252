"""Tell whether a number goes on from the numbers before it: "+ bias 768, + norm 512 = …"."""

from __future__ import annotations

import re

from tallystick.answers.check.chain.readings import Readings
from tallystick.answers.check.chain.sides import LEAST_REFERENCE, numbers_in
from tallystick.answers.check.earlier.addends import Addends
from tallystick.answers.check.earlier.columns import MOST_BETWEEN
from tallystick.derivations.arithmetic import alone, exactly
from tallystick.derivations.statements import Derivation, Side, Statement

MOST_BEFORE = 6  # numbers that it may go on from
_SIGNED = re.compile(
    r"\W*(?:then,? (?:we )?|now |next,? )?(?:\+|(?:plus|add(?:ing|s)?|dazu|zuzüglich|ajout\w+|suman?do|añad\w+|плюс)\b|加上|再加"
    r"|(?P<minus>[-−–]\s?\d|(?:minus|less|without|w/o|subtract\w*|abzüglich|moins|menos|минус|减去|減去|引く|빼기)(?!\w)))",
    re.IGNORECASE,
)


class Continued:
    """The numbers before a side to which it is added, or from which it is taken away."""

    def __init__(self, derivation: Derivation, so_far: Addends, readings: Readings) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.readings = readings

    def why(self, statement: Statement, left: Side, right: Side, *, asides: bool) -> str:
        """Return why a side differs from the number behind it: that has earlier ones too; or ""."""
        if self._goes_on(statement, left, right, asides):
            return "goes on from the numbers before it"  # "params + grads = 2+2, Adam = 4+4 = 8"
        if statement.last > statement.line and self._adds_above(statement, left, right, asides):
            return "adds the lines above it"  # "attention: 2.36M", "mlp: 4.72M", "= 7.08M"
        return ""

    def _goes_on(self, statement: Statement, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a number is its side with those before it, or the last without its side.

        These stand on its line, or right above a line that begins with a sign.
        """
        one, other = self.readings.exact(left, right, asides)
        number = alone(right.expression, loose=right.loose) or exactly(other)
        signed = _SIGNED.match(statement.plain)
        true = one
        line, added, own = statement.line, exactly(one), {part.value for part in numbers_in(left.expression)}
        for place in range(self.so_far.place - 1, max(-1, self.so_far.place - 1 - MOST_BEFORE), -1):
            claim, before = self.so_far.claims[place], self.derivation.statements[place]
            near = before.line == statement.line or (signed is not None and line - before.last <= MOST_BETWEEN)
            if claim is None or claim.defines or not near:
                return False
            line = before.line
            if claim.stated in own and claim.stated >= LEAST_REFERENCE:
                continue  # the side goes on from it already
            taken = signed is not None and signed["minus"] and abs(claim.stated - one) == number.exact
            added, true = added.plus(claim.written), true + claim.true
            if taken or added.meets(number) or exactly(true).meets(number):
                return True
        return False

    def _adds_above(self, statement: Statement, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a number on a line of its own is the sum of the list above it."""
        number = alone(right.expression, loose=right.loose)
        own, below = self.readings.value(left.expression, asides), statement.line
        for places, sums in self.so_far.last() if number is not None and number.high > own.low else ():
            line, both = self.derivation.statements[places[-1]], own.plus(sums)
            if number is None or below - line.last > MOST_BETWEEN or both.low > number.high:
                break
            if both.meets(number):
                return True
            below = line.line
        return False
