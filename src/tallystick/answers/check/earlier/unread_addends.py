"""Tell whether a list has more than the numbers that were read: "(×2)", "V: same as K"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.chain.sides import numbers_in
from tallystick.answers.check.claims import Claim
from tallystick.answers.check.earlier.addends import Addends
from tallystick.derivations.arithmetic import exactly
from tallystick.derivations.statements import Derivation

MOST_SAID = 2_000  # characters of a sentence
LONGEST = 200  # characters of a line of a list
MOST_LINES = 12  # of a list with more on its lines
MOST_SAME = 4  # lines that are as others
PRECISE = 50  # a total that is rounded by less than 1/50
_TWICE = re.compile(
    r"\b(?:each|apiece|same|twice|both|two|shared|je|jeweils|beide|doppelt|chacun\w*|deux|cada|dos|ambos)\b|各|两|同样|도|оба",
    re.IGNORECASE,
)
_TIMES = re.compile(r"\(\s?(?:[x×*]\s?(?P<behind>\d{1,3})|(?P<before>\d{1,3})\s?[x×*])(?!\d)[^()\d]{0,40}\)")
_SAME = re.compile(
    r"\b(?:same|likewise|ditto|equal|identical|also|wie|ebenso|gleich|identisch|idem|comme|même|igual|como|mism[ao]|так же|как)\b|同|一样|一樣|동일|같",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[,. ]")  # of thousands
_WHOLE = re.compile(r"(?<![\w.,])(?:\d[\d,]{0,14}|\d{1,3}(?:[. ]\d{3}){2,4})(?![\w.,]*\d)")


class UnreadAddends:
    """What the lines of a list say besides the numbers that their sum adds."""

    def __init__(self, derivation: Derivation, so_far: Addends) -> None:
        self.derivation = derivation
        self.so_far = so_far

    def explain(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is right with what else the lines of its sum say."""
        more = claim.stated - self.so_far.sum(places).exact
        if not places or more <= 0:
            return bool(places) and self._adds_last(claim)
        whole = more.denominator == 1
        return (
            self._adds_last(claim)
            or (whole and self._is_said(min(places), claim, max(more, LITTLE * claim.stated)))
            or (whole and self._between(places, more))
            or (len(places) <= MOST_LINES and (self._repeats(places, claim) or self._behind(places, more)))
        )

    def takes_twice(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total has one line's number more, and words say so: "131M each"."""
        sums = self.so_far.sum(places)
        more = claim.stated - sums.exact
        spread = (sums.high - sums.low + claim.written.high - claim.written.low) / 2
        if more <= 0 or spread * PRECISE > claim.stated:
            return False
        twice = [place for place in places if abs(self.so_far.at(place).stated - more) <= spread]
        ends = (self.derivation.statements[place].last for place in twice)
        lines = (line for end in ends for line in self.derivation.lines[end - 1 : end + 1])
        return any(_TWICE.search(line) or _TIMES.search(line) for line in lines)

    def _between(self, places: Sequence[int], more: Fraction) -> bool:
        """Return whether a line without a statement has the number that a total has more.

        Example: "- 16 scalars" in its list.
        """
        lines = self.derivation.statements[min(places) : self.so_far.place + 1]
        read = {line.line for line in lines}
        between = (number for number in range(lines[0].line, lines[-1].line) if number not in read)
        return any(one == more for number in between for one in _whole_in(self.derivation.lines[number - 1][:LONGEST]))

    def _adds_last(self, claim: Claim) -> bool:
        """Return whether a total adds the unread numbers right above it to an earlier one.

        Example: "Adding the embeddings (525,336,576) and the norm (4,096):" above "Total = …".
        """
        place, lines = self.so_far.place, self.derivation.statements
        last = max((line.last for line in lines[max(0, place - 1) : place]), default=0)
        between = self.derivation.lines[last : lines[place].line - 1]
        added = sum(number for line in between for number in _whole_in(line[:MOST_SAID]))
        before = (self.so_far.claims[earlier] for earlier in range(max(0, place - MOST_LINES), place))
        return added > 0 and any(one is not None and one.stated + added == claim.stated for one in before)

    def _is_said(self, first: int, claim: Claim, least: Fraction) -> bool:
        """Return whether a line from a statement on has an unread number, of `least` or more.

        A sentence may state more than the total has more: "with 16 of them we get 12,636,160".
        """
        lines = self.derivation.statements[first : self.so_far.place + 1]
        read = {number.value for line in lines for side in line.sides for number in numbers_in(side.expression)}
        return any(
            least <= number < claim.stated and number not in read
            for line in self.derivation.lines[lines[0].line - 1 : lines[-1].line - 1]
            for number in _whole_in(line[:MOST_SAID])
        )

    def _behind(self, places: Sequence[int], more: Fraction) -> bool:
        """Return whether the other numbers on the lines of a list are what a total has more.

        Example: ", bias 2304" and ", bias 768".
        """
        behind = list[int]()
        for place in places:
            numbers = list(_whole_in(self.derivation.statements[place].plain[:LONGEST]))
            stated = self.so_far.at(place).stated
            if stated in numbers:
                last = len(numbers) - numbers[::-1].index(int(stated))
                behind += numbers[last : last + 1]
        return bool(behind) and sum(behind) == more

    def _repeats(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total takes lines as often as they say, or adds some like others.

        Examples: "(×2)", "(twice)", "V: same as K".
        """
        rows = [self.so_far.at(place).written for place in places]
        ends = [self.derivation.statements[place].last for place in places]
        said = [self.derivation.lines[end - 1][:LONGEST] for end in ends]
        times = [_times(line) for line in said]
        taken = exactly(0)
        for row, count in zip(rows, times, strict=True):
            taken = taken.plus(row.times(exactly(count)))
        if max(times) > 1 and taken.meets(claim.written):
            return True
        below = self.derivation.lines[min(ends) : self.derivation.statements[self.so_far.place].line - 1]
        same = sum(1 for line in below if _SAME.search(line[:LONGEST]))
        sums = self.so_far.sum(places)
        for added in combinations_with_replacement(rows, same) if 0 < same <= MOST_SAME else ():
            found = sums
            for row in added:
                found = found.plus(row)
            if found.meets(claim.written):
                return True
        return False


def _times(line: str) -> int:
    """Return how many times a line says that it is taken."""
    found = _TIMES.search(line)
    if found is not None:
        return int(found["behind"] or found["before"])
    return 2 if _TWICE.search(line) else 1


def _whole_in(text: str) -> Iterator[int]:
    """Yield the whole numbers that a text writes."""
    return (int(_SEPARATOR.sub("", found[0])) for found in _WHOLE.finditer(text))
