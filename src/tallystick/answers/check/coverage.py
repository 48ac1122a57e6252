"""Compare a total's terms with the model: parts left out, counted twice, or sized wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from tallystick.answers.check.labels import tags_of
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity, fit
from tallystick.answers.check.terms import Term

ROLES = frozenset({"token", "position", "head", "attention", "mlp", "experts", "router", "norm"})
VOCABULARY = frozenset({"token", "head"})
LEAST_SHARE = 100  # a part is known by its size if the total is rounded by less than this share of it
MOST_ROUNDS = 6  # of splitting terms whose only match is already taken


@dataclass(frozen=True)
class Omission:
    """A correction of a text's total: parameters to add or subtract, and the cause."""

    what: str
    parameters: int  # signed
    names: tuple[str, ...]  # tensor names, with * for the layer index
    cause: str  # left out | counted twice | another size | rounded | not in the model
    line: int | None  # line of the term; None for omitted parts

    def to_dict(self) -> dict[str, Any]:
        """Return one item of ``omissions`` in the JSON."""
        return {**asdict(self), "names": list(self.names)}


class _Match(NamedTuple):
    term: Term
    quantity: Quantity


def omissions(total: Term, quantities: Quantities) -> tuple[Omission, ...] | None:
    """Return the corrections that lead from a total to the model's, or None if no term is known.

    Args:
        total: the total, with its arithmetic corrected.
        quantities: the quantities of the model.
    """
    if total.value == quantities.total:
        return ()
    terms = _terms((total,), quantities)
    for _ in range(MOST_ROUNDS):
        matched, spare = _assigned(terms, quantities)
        whole = [term for term in spare if term.parts and _candidates(term, quantities)]
        if not whole:
            break
        terms = [term for term in terms if term not in whole] + _terms(
            [p for term in whole for p in term.parts], quantities
        )
    if not matched:
        return None
    covered = frozenset(atom for match in matched for atom in match.quantity.atoms)
    found = [
        Omission(
            match.quantity.what,
            int(match.quantity.parameters - match.term.value),
            match.quantity.names,
            "rounded",
            match.term.line,
        )
        for match in matched
        if match.quantity.parameters != match.term.value
    ]
    for term in spare:
        if (other := _misnamed(term, covered, quantities)) is not None:
            covered |= other.atoms
            continue
        omission, atoms = _surplus(term, covered, quantities)
        covered |= atoms
        found.append(omission)
    return tuple(found + _left_out(covered, quantities))


def without_one(value: Fraction, spread: Fraction, quantities: Quantities) -> Omission | None:
    """Return the head or embedding without which the model has a lone total, or None.

    The head is preferred to a token embedding of the same size, as the base model has none.

    Args:
        value: the total, stated without terms.
        spread: how far it may be rounded.
        quantities: the quantities of the model.
    """
    away = quantities.total - value
    found = [
        quantity
        for quantity in quantities.whole
        if abs(quantity.parameters - away) <= spread
        and _is_one(quantity)
        and quantity.tags & VOCABULARY
        and spread * LEAST_SHARE <= quantity.parameters
    ]
    left = max(found, key=lambda quantity: "head" in quantity.tags, default=None)
    return None if left is None else Omission(left.what, left.parameters, left.names, "left out", None)


def _terms(terms: Sequence[Term], quantities: Quantities) -> list[Term]:
    """Split terms until each matches a quantity of the model or cannot be split."""
    found = []
    for term in terms:
        if term.parts and not _candidates(term, quantities) and not _tied(term, quantities):
            found += _terms(term.parts, quantities)
        else:
            found.append(term)
    return found


def _candidates(term: Term, quantities: Quantities) -> list[Quantity]:
    found = [quantity for quantity in quantities.of(term.value, term.spread) if not quantity.one_layer]
    about = next((tags for label in term.labels if (tags := tags_of(label))), frozenset())
    agree = [quantity for quantity in found if not about or about & quantity.tags]
    return agree or found


def _tied(term: Term, quantities: Quantities) -> Quantity | None:
    """Return the tied tensor that a term counts a second time, or None."""
    about = next((tags for label in term.labels if (tags := tags_of(label))), frozenset())
    same = (quantity for quantity in quantities.tied if quantity.parameters == term.value)
    return next((quantity for quantity in same if quantity.tags <= about), None)


def _assigned(terms: Sequence[Term], quantities: Quantities) -> tuple[list[_Match], list[Term]]:
    """Assign each term its own quantity, so that no tensor is in two quantities.

    Return the matches, and the terms without a match.
    """
    choices = {place: _candidates(term, quantities) for place, term in enumerate(terms) if not _tied(term, quantities)}
    pairs = sorted(
        (-fit(quantity, terms[place].labels, _factors(terms[place])), order, place)
        for place, found in choices.items()
        for order, quantity in enumerate(found)
    )
    taken: dict[int, Quantity] = {}
    for _, order, place in pairs:
        quantity = choices[place][order]
        if place not in taken and not any(quantity.atoms & other.atoms for other in taken.values()):
            taken[place] = quantity
    for place, found in choices.items():
        if place not in taken:
            _make_room(place, found, choices, taken)
    matched = [_Match(terms[place], quantity) for place, quantity in sorted(taken.items())]
    return matched, [term for place, term in enumerate(terms) if place not in taken]


def _make_room(
    place: int, found: list[Quantity], choices: dict[int, list[Quantity]], taken: dict[int, Quantity]
) -> None:
    """Reassign the only conflicting term to another of its candidates."""
    for quantity in found:
        others = [other for other, theirs in taken.items() if theirs.atoms & quantity.atoms]
        if len(others) != 1:
            continue
        rest = [theirs.atoms for other, theirs in taken.items() if other != others[0]] + [quantity.atoms]
        for instead in choices[others[0]]:
            if not any(instead.atoms & atoms for atoms in rest):
                taken[others[0]], taken[place] = instead, quantity
                return


def _factors(term: Term) -> tuple[int, ...]:
    return tuple(sorted(factor for factor in term.factors if factor != 1))


def _misnamed(term: Term, covered: frozenset[int], quantities: Quantities) -> Quantity | None:
    """Return an uncounted quantity with exactly as many parameters as the term, or None.

    Example: the LM head, if its line speaks of the vocabulary.
    """
    same = (quantity for quantity in quantities.of(term.value) if not quantity.one_layer)
    free = [quantity for quantity in same if quantity.atoms and not quantity.atoms & covered]
    return max(free, key=lambda quantity: fit(quantity, term.labels, _factors(term)), default=None)


def _surplus(term: Term, covered: frozenset[int], quantities: Quantities) -> tuple[Omission, frozenset[int]]:
    """Return the correction for a term without a free match, and the atoms it covers."""
    label = next((label for label in term.labels if label), "")
    if found := _candidates(term, quantities):
        best = max(found, key=lambda quantity: fit(quantity, term.labels, _factors(term)))
        tied = next((quantity for quantity in quantities.tied if quantity.parameters == term.value), None)
        what = tied or best
        return Omission(what.what, -best.parameters, what.names, "counted twice", term.line), frozenset()
    free = [quantity for quantity in quantities.labelled(term.labels) if not quantity.atoms & covered]
    if free and term.value > 0:
        meant = min(free, key=lambda quantity: abs(quantity.parameters - term.value))
        difference = int(meant.parameters - term.value)
        return Omission(meant.what, difference, meant.names, "another size", term.line), meant.atoms
    return Omission(label or "a term", -int(term.value), (), "not in the model", term.line), frozenset()


def _left_out(covered: frozenset[int], quantities: Quantities) -> list[Omission]:
    """Return the uncovered quantities as omissions, in few parts of one role each."""
    missing = frozenset(range(len(quantities.atoms))) - covered
    found = []
    for quantity in sorted(quantities.whole, key=lambda quantity: -len(quantity.atoms)):
        if quantity.atoms <= missing and _is_one(quantity):
            missing -= quantity.atoms
            found.append(quantity)
    found.sort(key=lambda quantity: min(quantity.atoms))
    rest = [
        Omission(
            f"{quantities.atoms[atom].name}",
            quantities.atoms[atom].parameters,
            (quantities.atoms[atom].name,),
            "left out",
            None,
        )
        for atom in sorted(missing)
    ]
    return [Omission(quantity.what, quantity.parameters, quantity.names, "left out", None) for quantity in found] + rest


def _is_one(quantity: Quantity) -> bool:
    """Return whether a quantity has one role.

    All attention biases are excluded: they belong to the projections.
    """
    return len(quantity.tags & ROLES) == 1 and quantity.tags != {"attention", "bias"}
