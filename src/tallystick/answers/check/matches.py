"""Match the numbers of a text with the model's quantities: by number, rounding and label."""

from __future__ import annotations

import re
from fractions import Fraction

from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.chain.sides import LEAST_REFERENCE
from tallystick.answers.check.claims import Claim, counts_no_parameters, counts_operations, is_total, is_whole, measures
from tallystick.answers.check.labels import KINDS, tags_of
from tallystick.answers.check.model.misfit import misfit
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity, tensor_in
from tallystick.answers.check.terms import Term
from tallystick.derivations.arithmetic import Number, Value
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import Statement

_VARIABLES = re.compile(r"\b[^\W\d_]\b|\b\w+_\w+\b|\(.*?\)")  # names of sizes: vocab_size, V

_ADDENDS = re.compile(r"[+(,;]\s")
_NEXT = re.compile(r"\s*(?:[+)]\s*[^\W\d]|\)?\s*$)")  # the words of the next addend


class Matches:
    """The model's quantities that a text states; none without a model."""

    def __init__(self, quantities: Quantities | None) -> None:
        self.quantities = quantities
        self.matched: set[Quantity | None] = set()

    def of(self, claim: Claim, statement: Statement) -> Quantity | None:
        """Return the model's quantity with this number: exactly, or within its rounding."""
        small = claim.expression is None and claim.stated < LEAST_REFERENCE
        size = small and not tensor_in(statement.label)
        if self.quantities is None or size or (claim.defines and not is_total(statement)):
            return None
        if counts_no_parameters(statement, claim.stated) or (claim.kind == "adapters" and not tags_of(statement.label)):
            return None  # "A: [4096 × 32] = 131,072" of an adapter is not all norms
        if counts_operations(statement) or (claim.kind == "measured" and statement.sides[-1].unit == "bytes"):
            return None
        labels: tuple[str, ...] = statement.labels
        if not tags_of(labels[0]):  # "1,024 positions × 768", "the whole: 218.1M × 32 layers"
            labels = (_VARIABLES.sub(" ", statement.clause.partition("=")[0]), *labels)
        found = None
        if claim.true in self.quantities.numbers:
            found = self.quantities.best(claim.true, labels, _factors(claim.term), self.matched)
        spread = claim.term.spread if claim.term else Fraction(0)
        if found is None and (spread or claim.is_rounded):
            width = max(spread, (claim.written.high - claim.written.low) / 2)
            near = Value(claim.true, claim.true - width, claim.true + width)
            if is_total(statement):
                found = self.quantities.whole_model(near) or self.quantities.whole_model(claim.written)
            found = found or self.quantities.stated(near, labels, self.matched)
        self.matched.add(found)
        return found

    def addend(self, number: Fraction, statement: Statement) -> Quantity | None:
        """Return the quantity that an addend is by its number: "4·d² + 8·d² = 2.36M + 4.72M"."""
        if self.quantities is None or number < LEAST_REFERENCE or measures(statement):
            return None
        labels = statement.labels if tags_of(statement.label) - KINDS else ()  # not of other parts around it
        labels = _words_before(number, statement) or labels
        return None if counts_operations(statement) else self.quantities.best(number, labels)

    def lone(self, claim: Claim, statement: Statement) -> Quantity | None:
        """Return the quantity that a number without a formula states, by its label."""
        if self.quantities is None or measures(statement) or counts_no_parameters(statement, claim.stated):
            return None
        whole = self.quantities.whole_model(claim.written) if is_total(statement) else None
        found = whole or self.quantities.stated(claim.written, statement.labels, self.matched)
        self.matched.add(found)
        return found

    def mistyped(self, claim: Claim, statement: Statement) -> Quantity | None:
        """Return the quantity that a number without a formula states but for one digit."""
        matched = claim.match is not None and claim.match.parameters == claim.stated
        if self.quantities is None or matched or measures(statement) or counts_no_parameters(statement, claim.stated):
            return None
        if statement.column > 1 or (statement.column and not is_whole(claim.side)):
            return None  # perhaps of another model
        if is_whole(claim.side):
            return self.quantities.mistyped(claim.stated, statement.labels, total=is_total(statement))
        return self._misread(claim, statement)

    def _misread(self, claim: Claim, statement: Statement) -> Quantity | None:
        """Return what the label of a rounded number names, if it has that number but for a digit.

        The model must have nothing of the number as it stands: 7.1M may be a layer without biases.
        """
        meant = self.quantities.meant(statement.label, claim.stated) if self.quantities else None
        if meant is None or self.quantities is None or not isinstance(claim.side, Number):
            return None
        off = abs(meant.parameters - claim.stated) > LITTLE * meant.parameters
        typed = off and is_typed_for(claim.side, Fraction(meant.parameters))
        return meant if typed and not self.quantities.within(claim.written) else None

    def misfit(self, claim: Claim, statement: Statement) -> str | None:
        """Return a sentence about what the label names, if the model has another number of it."""
        if self.quantities is None or claim.defines:
            return None
        # A total under a heading counts what the heading names.
        words = statement.heading if is_total(statement) and not tags_of(statement.label) else statement.label
        found = misfit(words, claim.true, self.quantities)
        # A number without a formula is what it matches, unless that is a projection of the label's.
        part = claim.match is None or claim.match.is_projection
        return found.sentence if found and (claim.expression is not None or (found.why and part)) else None


def _words_before(number: Fraction, statement: Statement) -> tuple[str, ...]:
    """Return the words of an addend with its result: "… + attn c_proj 768 × 768 = 589,824 + …"."""
    written = f"{number.numerator:,}"
    before, _, behind = statement.plain.partition(written if written in statement.plain else str(number))
    words = _ADDENDS.split(before.rstrip(" =≈"))[-1]
    return (words,) if _NEXT.match(behind) and tags_of(words) - KINDS else ()


def _factors(term: Term | None) -> tuple[int, ...]:
    """Return the factors of a term, or of the product that is nearly all of it.

    The bias of a projection is negligible next to its weight.
    """
    if term is None:
        return ()
    leaves = term.leaves
    largest = leaves[0] if len(leaves) == 1 else max(leaves, key=lambda leaf: abs(leaf.value))
    if largest is not term and abs(term.value - largest.value) > LITTLE * abs(term.value):
        return ()
    return largest.sizes
