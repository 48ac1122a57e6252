"""Tell how often a total takes the lines above it: those of a layer, or under "Block × 6:"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tallystick.answers.check.chain.mistyped import is_mistyped
from tallystick.answers.check.claims import Claim, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.multiples import MOST_TIMES, takes_layers
from tallystick.answers.check.labels import LAYERS, tags_of
from tallystick.derivations.arithmetic import Number, exactly
from tallystick.derivations.statements import Derivation

MOST = 2  # of a total, for the lines that it takes several times
# "6 × Transformer Block", "Block ×6", "32 transformer layers", "Encoder (12 camadas, …)"
_COUNT = re.compile(
    rf"(?<![\w.,])(\d{{1,3}})\s?(?:[*×x]\s+(?=[^\W\d])|(?:[^\W\d]+\s){{0,2}}{LAYERS}|total\))|(?<!\d)(?<!\d\s)[*×x]\s?(\d{{1,3}})(?![\w.,]*\d)",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?:n|num|number)_?(?:hidden_|decoder_|encoder_|of_)?(?:layers?|blocks?)|(?:layers|blocks|depth)(?: \(L\))?|L",
    re.IGNORECASE,
)


class Repeated:
    """Finds totals that take the lines of one layer as often as there are layers."""

    def __init__(self, derivation: Derivation, so_far: Addends, constants: Mapping[str, int]) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.layers = next((constants[name] for name in constants if _NAME.fullmatch(name)), 0)
        self.seen = 0  # statements searched for the number of layers

    def times(self, place: int) -> int:
        """Return how often the whole has the number of a statement, by what it stands under."""
        times = self._times_around(place)
        return 1 if times > 1 and takes_layers(self.derivation.statements[place], times) else times

    def may_take(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total may take some lines several times: it is not far below that."""
        several = [(place, times) for place in places if (times := self.times(place)) > 1]
        return (
            bool(several)
            and sum(self.so_far.at(place).stated * times for place, times in several) <= MOST * claim.stated
        )

    def _times_around(self, place: int) -> int:
        """Return the count of layers that a statement stands under, or 1."""
        statement = self.derivation.statements[place]
        for words in (*statement.items, statement.heading):
            if (count := count_in(words)) > 1:
                return count
        return self.layers if self.layers and "one" in tags_of(statement.label) | tags_of(statement.heading) else 1

    def of(self, claim: Claim) -> Sum | None:
        """Return the last lines that a total adds, those of a layer several times, or None.

        The total is their sum, or that but for one digit.
        """
        ways = list(self.last(claim))
        if (fits := next((way for way in ways if way.sums.meets(claim.written)), None)) is not None:
            return fits._replace(fits=True)
        return next((way for way in ways if is_mistyped(claim, way.sums, judged=True)), None)

    def last(self, claim: Claim) -> Iterator[Sum]:
        """Yield the last lines, one more each time, and their sum with a layer several times.

        No sum is more than `MOST` times the claim.
        """
        self._count_layers()
        found, counts, sums, several = list[int](), list[int](), exactly(0), False
        for place in self.so_far.free():
            count = min(self._times_around(place), MOST_TIMES)
            if count > 1 and takes_layers(self.derivation.statements[place], count):
                return  # the layers are in the lines already
            several = several or count > 1
            found.append(place)
            counts.append(count)
            one = self.so_far.at(place).written
            sums = sums.plus(one if count == 1 else one.times(exactly(count)))
            if sums.low > MOST * claim.written.high:
                return
            if several and len(found) > 1:
                yield Sum(tuple(found[::-1]), sums, False, tuple(counts[::-1]))

    def _count_layers(self) -> None:
        """Take the number of layers from the sizes that the text has given so far."""
        for place in range(self.seen, self.so_far.place):
            statement = self.derivation.statements[place]
            number = statement.sides[-1].expression
            named = _NAME.fullmatch(statement.name or statement.label)
            if named and isinstance(number, Number) and is_whole(number) and 1 < number.value <= MOST_TIMES:
                self.layers = int(number.value)
        self.seen = self.so_far.place


def count_in(words: str) -> int:
    """Return how many layers some words name, or 1: 6 of "6 × Block", "Block ×6" or "6 layers"."""
    count = _COUNT.search(words) if "=" not in words else None
    return int(count[1] or count[2]) if count is not None else 1
