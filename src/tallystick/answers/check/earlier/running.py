"""Judge the sums so far that a column of a table has: "| Part | Parameters | Running total |"."""

from __future__ import annotations

from tallystick.answers.check.chain.mistyped import LEAST_OFF
from tallystick.answers.check.claims import Claim, is_running, is_whole
from tallystick.answers.check.earlier.addends import MOST_SUMMED, Addends
from tallystick.derivations.arithmetic import Number, Value, exactly
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import Derivation

MOST_APART = 3  # lines from the line above a table to its first row
SHORT = 3  # digits of a rounded sum that has one of them wrong


class Running:
    """Compares each sum with the one in the row above it, and the number of its own row."""

    def __init__(self, derivation: Derivation, so_far: Addends) -> None:
        self.derivation = derivation
        self.so_far = so_far

    def sum(self) -> Value | None:
        """Return what the cell of the current statement must have, or None if that is not known."""
        lines, place = self.derivation.statements, self.so_far.place
        own = self.so_far.claims[place - 1] if place and lines[place - 1].line == lines[place].line else None
        if own is None:
            return None
        places = range(place - 1, max(-1, place - 1 - MOST_SUMMED), -1)
        above = next((one for one in places if lines[one].line < lines[place].line), None)
        gap = lines[place].line - lines[above].last if above is not None else MOST_APART
        if above is None or gap >= MOST_APART:
            return exactly(0).plus(own.written)
        before = self.so_far.claims[above] if is_running(lines[above]) and gap == 1 else None
        return None if before is None else before.written.plus(own.written)

    def is_wrong(self, claim: Claim, meant: Value) -> bool:
        """Return whether a sum is not what it must be, and no rounding explains it."""
        if meant.meets(claim.written) or not isinstance(claim.side, Number):
            return False
        exact = is_whole(claim.side) and meant.is_exact
        far = abs(meant.exact - claim.stated) > LEAST_OFF * meant.exact
        return exact or far or is_typed_for(claim.side, meant.exact, least=SHORT)
