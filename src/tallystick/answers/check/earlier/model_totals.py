"""Judge a total by the model: it may have the model's number, and its list another sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from fractions import Fraction
from itertools import combinations

from tallystick.answers.check.chain.mistyped import LEAST_OFF, is_mistyped
from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.claims import Claim, is_total, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import Allowances
from tallystick.answers.check.earlier.lists import NEAR
from tallystick.answers.check.earlier.multiples import takes_layers
from tallystick.answers.check.earlier.repeated import Repeated
from tallystick.answers.check.labels import KINDS, OF_ATTENTION, OF_EXPERTS, OF_MLP, nearest_tags, tags_of
from tallystick.answers.check.model.quantities import VAGUE, Quantities
from tallystick.answers.check.model.quantity import Quantity
from tallystick.derivations.arithmetic import Number, Value, alone
from tallystick.derivations.statements import TAKEN, Derivation, Statement

MOST_UNLIKE = Fraction(1, 20)  # of a list, from the model, next to a total that is far from both
MOST_ABOVE = Fraction(1, 50)  # of a total: what the rounding of its parts may add to them
MOST_ROUNDED = Fraction(3, 20)  # of a total with zeros at its end: 100M is not said of 124M
_OF_LAYERS = OF_ATTENTION | OF_MLP | OF_EXPERTS | {"block"}


class ModelTotals:
    """Compares totals, the lists above them and the model; without a model it finds nothing."""

    def __init__(
        self,
        derivation: Derivation,
        so_far: Addends,
        quantities: Quantities | None,
        allowances: Allowances,
        repeated: Repeated,
    ) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.quantities = quantities
        self.allowances = allowances
        self.repeated = repeated

    def states(self, claim: Claim) -> bool:
        """Return whether a number is the model's total, or rounds it."""
        return self.quantities is not None and (claim.stated == self.quantities.total or self.rounds(claim))

    def is_exact(self, claim: Claim) -> bool:
        """Return whether a number is the model's total to the last digit."""
        return self.quantities is not None and claim.stated == self.quantities.total and is_whole(claim.side)

    def is_one_layer(self, statement: Statement, claim: Claim) -> bool:
        """Return whether a number is one layer of the model to the last digit.

        Its norms, or another part, may have no line above it. A label that names a part of a layer
        counts that.
        """
        if self.quantities is None or claim.is_rounded or not tags_of(statement.label) <= KINDS:
            return False
        return self.quantities.are_one_layer(claim.stated)

    def rounds(self, claim: Claim) -> bool:
        """Return whether a number rounds the model's total: "~6.7B" of 6,738,415,616."""
        if self.quantities is None or not claim.is_rounded:
            return False
        total, number = self.quantities.total, claim.written
        vague = number.high - number.low > VAGUE * claim.stated
        away = abs(claim.stated - total)
        unit = claim.side.unit if isinstance(claim.side, Number) else 0
        near = away <= unit and 2 * away <= LITTLE * total  # 110M is said of 109,482,240 too
        return near or (not vague and number.low <= total <= number.high)

    def _names(self, claim: Claim) -> bool:
        """Return whether a number is the model's total as names have it: "7B"."""
        total, number = self.quantities.total if self.quantities else 0, claim.written
        return claim.is_rounded and number.low <= total <= number.high

    def are_others(self, places: Sequence[int], statement: Statement, claim: Claim) -> bool:
        """Return whether lines list the whole model, yet do not add up to the total that states it.

        Example: "12 blocks: 84,934,656" without biases, and the total with them.
        """
        if statement.column or not self._are_together(places, statement):
            return False
        sums = self.so_far.sum(places)
        right = self.allowances.leaves_out(places, claim) or self.allowances.goes_on_right(places, claim)
        if right or not claim.stated / NEAR <= sums.exact <= claim.stated * NEAR:
            return False
        stated = filter(None, (self.so_far.at(place).stated for place in places))
        if self.quantities is None or (not claim.is_rounded and not all(map(self.quantities.of, stated))):
            return False
        tags = [self._tags(place) for place in places]
        layers = any("block" in one and one <= KINDS - {"one"} for one in tags)
        layers = layers or any(takes_layers(self.derivation.statements[place]) for place in places)
        return layers and self._misses(sums, frozenset().union(*tags), claim)

    def others(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return the lines of such a list with those of one layer several times, or None.

        Example: "Total: ~135M" below an embedding and the matrices of a layer.
        """
        if not (self.rounds(claim) or self._names(claim)) or statement.column:
            return None
        found = self._repeated(statement, claim)
        if found is None or not self._are_together(found.places, statement):
            return None
        layer, rest = set[str](), set[str]()
        for place, times in zip(found.places, found.times, strict=True):
            (layer if times > 1 else rest).update(self._tags(place))
        whole = layer & OF_ATTENTION and layer & (OF_MLP | OF_EXPERTS) and not rest & _OF_LAYERS
        return found if whole and self._misses(found.sums, layer | rest, claim) else None

    def _repeated(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return all lines of a total's list, those of one layer several times, or None."""
        found = None
        for one in self.repeated.last(claim):
            first = self.derivation.statements[one.places[0]]
            if first.heading != statement.heading and not first.items:
                break
            found = one
        return found

    def _tags(self, place: int) -> frozenset[str]:
        line = self.derivation.statements[place]
        return nearest_tags((line.label, *line.items))

    def _are_together(self, places: Sequence[int], statement: Statement) -> bool:
        """Return whether lines and their total form one list, in which nothing is taken away."""
        lines = [self.derivation.statements[place] for place in places]
        apart = any(line.section != statement.section or TAKEN.search(line.plain) for line in lines)
        return not apart and self.allowances.are_listed(places, items=True)

    def _misses(self, sums: Value, named: Set[str], claim: Claim) -> bool:
        """Return whether a sum misses the model's total, and not by parts without a name.

        A list may leave out a part outside the layers, such as the final norm. Next to a rounded
        total it must have the token embedding, and be far off.
        """
        outside = self.quantities.outside_layers() if self.quantities is not None else {}
        parts = [size for tag, size in outside.items() if tag not in named]
        ways = {sum(some) for count in range(len(parts) + 1) for some in combinations(parts, count)}
        missing = claim.stated - sums.exact
        if not claim.is_rounded:
            return missing > 0 and missing not in ways
        least = LEAST_OFF if missing > 0 else MOST_ABOVE  # a list has no more than the model
        little = max(least * claim.stated, claim.written.high - claim.stated)
        return "token" in named and all(abs(missing - way) > little for way in ways)

    def meant(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return the last lines if they, unlike the number, sum to what the label names.

        Example: "Total: 125B" below parts of 0.6B and 174B, of a model of 174.6B.
        """
        about = tags_of(statement.label)
        named = (
            self.quantities.meant_by_total(one_layer="one" in about)
            if self.quantities and claim.is_rounded and is_total(statement) and about <= KINDS
            else None
        )
        if named is None or not isinstance(claim.side, Number) or self._is_another(claim, named):
            return None
        loose, rounds = alone(claim.side, loose=True) or claim.written, self.rounds(claim)
        far = _is_far(claim.side, loose, named.parameters)
        twice = not claim.stated / NEAR <= named.parameters <= claim.stated * NEAR
        most = (MOST_UNLIKE if twice else LITTLE) * named.parameters
        for found in self._lists(statement, claim, (1 + LITTLE) * named.parameters):
            less = loose.high < found.sums.low and not rounds  # than its own addends
            meant = far or less or is_mistyped(claim, found.sums, judged=True, least=LITTLE)
            near = abs(found.sums.exact - named.parameters) <= most
            if meant and near and not self._has_row_above(found.places[0]):
                lines = self.derivation.statements[found.places[0] : self.so_far.place + 1]
                taken = any(TAKEN.search(line.plain) for line in lines) or self.allowances.leaves_out(
                    found.places, claim
                )
                total = any(self.so_far.at(place).stated == named.parameters for place in found.places)
                return None if taken or total else found  # the model's total stands above other numbers
        return None

    def _lists(self, statement: Statement, claim: Claim, most: Fraction) -> Iterator[Sum]:
        """Yield the last lines, one more each time, up to a sum of `most`, and the whole list."""
        for found, sums in self.so_far.last():
            if len(found) > 1:
                yield Sum(tuple(found[::-1]), sums, fits=False)
            if sums.low > most:
                break
        if (whole := self._repeated(statement, claim)) is not None:
            yield whole

    def _has_row_above(self, place: int) -> bool:
        """Return whether a row of a table follows another one that no sum has yet."""
        lines = self.derivation.statements
        above = place and place - 1 in self.so_far.free() and lines[place - 1].last == lines[place].line - 1
        return bool(above) and "|" in lines[place].plain and "|" in lines[place - 1].plain

    def _is_another(self, claim: Claim, total: Quantity) -> bool:
        """Return whether a rounded number is another quantity of the model: "617M" of the head.

        It may also count a tied head: "163M (untied)".
        """
        if self.quantities is None or not isinstance(claim.side, Number):
            return False
        near = [one.parameters for one in self.quantities.whole if one is not total]
        outside = self.quantities.outside_layers()
        if "head" not in outside:
            near.append(total.parameters + outside.get("token", 0))
        return any(abs(one - claim.stated) <= claim.side.unit for one in near)


def _is_far(number: Number, loose: Value, parameters: int) -> bool:
    """Return whether a number is further from the model's than names such as 7B are.

    Example: 200M of 162,148,608, which it rounds to one digit.
    """
    away = abs(number.value - parameters)
    outside = not loose.low <= parameters <= loose.high
    return away > LEAST_OFF * parameters and (outside or away > max(number.unit, MOST_ROUNDED * parameters))
