"""Find the line above that a number multiplies: "× 12 layers"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain
from math import prod

from tallystick.answers.check.chain.mistyped import LEAST_OFF, is_mistyped
from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.chain.sides import LEAST_REFERENCE, numbers_in
from tallystick.answers.check.claims import Claim, is_total
from tallystick.answers.check.earlier.addends import Addends
from tallystick.answers.check.labels import KINDS, layers_of, tags_of
from tallystick.derivations.arithmetic import Number, Operation, Value, exactly
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import Derivation, Statement, names_sum

# "× 12 layers", "all attention × 32 = 1,342,177,280", "x 96 heads * 96 layers = …"
_TIMES_LABEL = re.compile(
    r"(?:[^\W\d][^\d=≈:|*×()]*\s)?\s*((?:[*×x]\s*\d{1,4}(?![\d.,])(?:\s+[^\W\d]+)*\s*)+)(?=[=≈:(]|[~]?\d[\d,._]{3,}|$)"
)

_SHAPE = re.compile(r"[(\[][^()\[\]]{0,60},[^()\[\]]{0,60}[)\]]")  # "(None, 128, 256)"
_COUNTS = re.compile(r"(?<![\d.,A-WYZa-wyz_])\d{1,3}(?![\d.,]*\d)")
SHORT = 2  # digits of a rounded number of layers
LEAST_EXACT = 4  # the same of an exact one
LEAST_DIGITS = 5  # before its zeros: $400,000 mistypes nothing
LEAST_PRODUCT = 10_000  # a smaller number may be a multiple by chance
LEAST_LAYER = 1_000_000  # parameters; a smaller factor may be a vocabulary: "50257 × 128"
MOST_ROWS = 12  # of a table, compared with each other
MOST_TIMES = 200  # layers
NEAR_TIMES = Fraction(1, 40)  # relative difference of a multiple of a rounded number


class Multiples:
    """What the statements before imply for a number that takes one of theirs several times."""

    def __init__(self, derivation: Derivation, so_far: Addends) -> None:
        self.derivation = derivation
        self.so_far = so_far

    def of(self, times: int, statement: Statement, claim: Claim) -> int | None:
        """Return the line above that "× 12 layers" multiplies, or None."""
        above = next((place for place in self.so_far.free() if self.so_far.at(place).stated), None)
        last = (
            self.so_far.place - 1 if self.so_far.place and self.so_far.claims[-2] else None
        )  # e.g. an adapter's line, which is not an addend
        layers, below = layers_of(statement.label) or times_before(statement) == 0, times_before(statement) > 0
        fit = (
            one
            for one in (above, last)
            if one is not None
            and (self._is_times(one, times, claim) or (layers and self._types_layers(one, times, claim, total=below)))
        )
        # "32 × layers: 5,670,961,152" may stand far below the number of one layer.
        far = (one for one in self.so_far.free() if self.so_far.at(one).stated * times == claim.stated)
        # "16 × Encoder layer: 50.44M" of 3.15M, which a table of one layer has as its total
        total = (one for one in self.so_far.free() if claim.is_rounded and self._is_layer_rounded(one, times, claim))
        if (place := next(chain(fit, far, total), None)) is None:
            return None
        one = self.so_far.at(place)
        whole = names_sum(self.derivation.statements[place].label) or times_before(statement)
        if one.stated * times != claim.stated and not (
            whole or claim.is_rounded or self._types(place, times, claim) or self._types_layers(place, times, claim)
        ):
            return None  # "12 layers" may include parts that the line above omits
        return place

    def _is_layer_rounded(self, place: int, times: int, claim: Claim) -> bool:
        """Return whether a claim rounds `times` the total of a list or table of one layer."""
        line, layers = self.derivation.statements[place], self.so_far.at(place).written.times(exactly(times))
        return layers.meets(claim.written) and is_total(line) and "one" in tags_of(line.heading)

    def counted(self, statement: Statement, claim: Claim) -> tuple[int, int, bool] | None:
        """Return a count in the label, a line above that the number multiplies, and if exactly.

        Else it counts layers of one that is above, and rounds them, or does but for a digit:
        "6 layers: 19.9M" of 3.15M each. "All blocks" counts as often as their number says.
        """
        if claim.expression is not None or claim.stated < LEAST_PRODUCT:
            return None
        label = _SHAPE.sub(" ", statement.label) if "," in statement.label else statement.label
        counts = [count for count in map(int, _COUNTS.findall(label)) if 1 < count <= MOST_TIMES]
        about = tags_of(statement.label)
        all_ = not counts and {"all", "block"} <= about <= KINDS
        above = self.so_far.free()[:MOST_ROWS] if counts or all_ else ()
        precise = len(str(claim.stated).rstrip("0")) >= LEAST_DIGITS
        for count in counts:
            for place in above:
                exact = self.so_far.at(place).stated * count == claim.stated
                if exact or (precise and self._types(place, count, claim)):
                    return count, place, exact
        layers = above if "block" in about else ()
        one = [place for place in layers if "one" in tags_of(self.derivation.statements[place].label)][:1]
        fits = ((count, place, False) for place in one for count in counts if self._is_layers(place, count, claim))
        return next(fits, None) or (self._all(one[0], claim) if one and all_ else None)

    def _all(self, place: int, claim: Claim) -> tuple[int, int, bool] | None:
        """Return how many layers "All blocks" counts of the one on a line above, and that line."""
        layer = self.so_far.at(place)
        times = round(claim.stated / layer.stated) if layer.stated else 0
        rounds = 1 < times <= MOST_TIMES and layer.written.times(exactly(times)).meets(claim.written)
        return (times, place, True) if rounds else None

    def _is_layers(self, place: int, times: int, claim: Claim) -> bool:
        """Return whether a claim rounds `times` the number of a line, or does but for a digit."""
        layers = self.so_far.at(place).written.times(exactly(times))
        return layers.meets(claim.written) or self._types_layers(place, times, claim)

    def _types_layers(self, place: int, times: int, claim: Claim, *, total: bool = False) -> bool:
        """Return whether a number of layers is one layer several times, but for a digit.

        Example: "Per layer: 12.6M", below it "6 layers: 73.5M". Layers may add a little to it, so
        that a number of few digits must be further away.

        Args:
            place: the line above.
            times: the number of layers.
            claim: the number.
            total: whether that line may be the total of one layer without saying so.
        """
        number, one, line = claim.side, self.so_far.at(place), self.derivation.statements[place]
        if not isinstance(number, Number) or not ("one" in tags_of(line.label) or (total and is_total(line))):
            return False
        layers = one.written.times(exactly(times))
        if not claim.is_rounded:
            return is_typed_for(number, layers.exact, least=LEAST_EXACT)
        ways = (way for way in (layers.exact, one.true * times) if is_typed_for(number, way, least=SHORT))
        less = claim.written.high < layers.low
        return any(
            less or abs(way - claim.stated) > LEAST_OFF * way or is_typed_for(number, way, least=LEAST_EXACT)
            for way in ways
        )

    def _is_times(self, place: int, times: int, claim: Claim) -> bool:
        """Return whether a claim is about `times` the number of an earlier line."""
        near = abs(self.so_far.at(place).stated * times - claim.stated) <= LITTLE * claim.stated
        return near or self._types(place, times, claim)

    def _types(self, place: int, times: int, claim: Claim) -> bool:
        """Return whether a claim is `times` the number of an earlier line, but for a digit."""
        return is_mistyped(claim, exactly(self.so_far.at(place).stated * times), judged=False)


def times_before(statement: Statement) -> int:
    """Return how many times a line takes what is above it: 12 for "× 12 layers", or 0."""
    counts = _TIMES_LABEL.match(statement.plain)
    return prod(map(int, re.findall(r"\d+", counts[1]))) if counts else 0


def takes_layers(statement: Statement, times: int = 0) -> bool:
    """Return whether a statement has several layers in it: "7,087,872 × 12", "12 blocks".

    Args:
        statement: any statement.
        times: how many layers; 0 for any number of them.
    """
    if (layers := layers_of(statement.label)) and times in (0, layers):
        return True
    products = (side.expression for side in statement.sides)
    factors = (sorted(part.value for part in numbers_in(one)) for one in products if isinstance(one, Operation))
    least = LEAST_REFERENCE if times else LEAST_LAYER
    several = (one[0] for one in factors if len(one) == 2 and one[1] >= least)
    return any(count == times if times else 1 < count <= MOST_TIMES for count in several)


def has_multiples(rows: Sequence[Value], total: Value) -> bool:
    """Return whether a total is the sum of some rows, without those that others take several times.

    Example: 4.7M of "MLP / layer", next to 56.6M of all twelve.
    """
    if len(rows) > MOST_ROWS:
        return False
    pairs = [
        (less, round(more.exact / less.exact))
        for more in rows
        for less in rows
        if less.exact and more.exact > less.exact and _is_multiple(more.exact / less.exact)
    ]
    for times in {times for _, times in pairs}:
        single = [row for row, count in pairs if count == times]
        rest = reduce(Value.plus, (row for row in rows if row not in single))
        if rest.meets(total):
            return True
    return False


def _is_multiple(ratio: Fraction) -> bool:
    return 1 < round(ratio) <= MOST_TIMES and abs(ratio - round(ratio)) <= NEAR_TIMES * ratio
