"""Say what a sum counts by what its parts count, where the model has no quantity of its number."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.chain.sides import LEAST_REFERENCE
from tallystick.answers.check.claims import LEAST_COUNT, Claim, counts_no_parameters, measures
from tallystick.answers.check.labels import VECTORS
from tallystick.answers.check.model.joined import joined
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity
from tallystick.answers.check.terms import Term
from tallystick.derivations.arithmetic import Value
from tallystick.derivations.statements import Statement

MOST_PARTS = 100  # of a sum, all levels together
MOST_KEPT = 50  # earlier numbers that a rounded one may refer to
LITTLE = 1000  # a part without a name may be 1/1000 of its sum

_Parts = tuple[Quantity, ...]


class _Known(NamedTuple):
    """What an earlier number counts."""

    number: Fraction
    spread: Fraction
    parts: _Parts


class ByParts:
    """What the numbers of a text count, each as the parts of the model that it adds."""

    def __init__(self, quantities: Quantities | None) -> None:
        self.quantities = quantities
        self._known: list[_Known] = []
        self._by_line: dict[int, list[_Known]] = {}
        self._left = MOST_PARTS

    def of(self, claim: Claim, statement: Statement) -> Quantity | None:
        """Return what a number counts: the quantity that it is, else its parts together.

        A rounded number may be more than its parts: 124.4M is GPT-2 with or without its biases.
        """
        match, term = claim.match, claim.term
        if self.quantities is None or term is None or (match is None and claim.true < LEAST_REFERENCE):
            return match
        counts = not (claim.defines or measures(statement) or counts_no_parameters(statement, claim.stated))
        exact = match is not None and match.parameters == claim.true
        self._left = MOST_PARTS
        if exact or not counts:
            parts = None
        elif term.parts:
            parts = self._of(term, self.quantities)
        else:
            parts = self._on_line(term, self.quantities) or self._again(term, self.quantities)
        found = joined(parts, self.quantities) if parts and (match is None or len(parts) > 1) else None
        if found is not None and abs(found.parameters - claim.true) <= max(term.spread, claim.true / LITTLE):
            match = found
        else:
            parts = None if match is None else (match,)
        for number in {claim.true, claim.stated} if parts else ():
            known = _Known(number, term.spread, parts or ())
            self._by_line.setdefault(term.line, []).append(known)
            self._known.append(known)
        return match

    def _of(self, term: Term, quantities: Quantities) -> _Parts | None:
        """Return the parts of the model that a term adds, or None if any is unknown."""
        self._left -= 1
        if self._left < 0:
            return None
        if (before := self._on_line(term, quantities)) is not None:
            return before
        if not term.parts:
            # A rounded number goes on from an earlier one; a product is what its factors say.
            ways = (self._again, self._alone) if term.spread else (self._alone, self._again)
            return next((found for way in ways if (found := way(term, quantities)) is not None), None)
        parts = list[Quantity]()
        for part in term.parts:
            little = abs(part.value) * LITTLE <= term.value or part.rest
            named = self._of(part, quantities) if part.value > 0 and not part.rest else None
            if named is None and not little:
                return None
            parts += named or self._little(part, parts, quantities)
        return tuple(parts)

    def _little(self, term: Term, parts: Sequence[Quantity], quantities: Quantities) -> _Parts:
        """Return what a small number without a name counts next to other parts, or ().

        It is the only earlier number like it, or a part over all layers that is not counted yet.
        """
        same = {one.parts for one in self._known[-MOST_KEPT:] if one.number == term.value}
        free = [one for one in quantities.of(term.value) if not one.one_layer]
        alike = len({one.component - VECTORS for one in free}) == 1  # scales or shifts of one norm
        ways = same if len(same) == 1 else {(one,) for one in free[:1] if alike}
        return next((way for way in ways if joined([*parts, *way], quantities) is not None), ())

    def _on_line(self, term: Term, quantities: Quantities) -> _Parts | None:
        """Return the parts of the number on a term's line that it is, or None."""
        return _parts_in(self._by_line.get(term.line, ()), term, quantities)

    def _again(self, term: Term, quantities: Quantities) -> _Parts | None:
        """Return the parts of the earlier number that a term is, or None."""
        return _parts_in(self._known, term, quantities) if term.value >= LEAST_COUNT else None

    def _alone(self, term: Term, quantities: Quantities) -> _Parts | None:
        """Return the quantity of a term without parts, by its number and labels, or None."""
        if term.spread:
            near = Value(term.value, term.value - term.spread, term.value + term.spread)
            found = quantities.stated(near, term.labels)
        else:
            found = quantities.best(term.value, term.labels, term.sizes)
        return None if found is None else (found,)


def _parts_in(known: Sequence[_Known], term: Term, quantities: Quantities) -> _Parts | None:
    """Return the parts of the last of some earlier numbers that a term refers to, or None."""
    last = reversed(known[-MOST_KEPT:])
    return next((parts for one in last if (parts := _parts(one, term, quantities))), None)


def _parts(known: _Known, term: Term, quantities: Quantities) -> _Parts | None:
    """Return the parts that a term counts if it is an earlier number, or that in all layers."""
    if abs(known.number - term.value) <= term.spread + known.spread:
        return known.parts
    if any(not one.one_layer for one in known.parts):
        return None
    pairs = [(one, whole) for one in known.parts if (whole := quantities.over_all_layers(one))]
    times = {whole.parameters // one.parameters for one, whole in pairs}
    layers = times.pop() if len(times) == 1 else 0
    near = abs(known.number * layers - term.value) <= term.spread + known.spread * layers
    return tuple(whole for _, whole in pairs) if layers and near else None
