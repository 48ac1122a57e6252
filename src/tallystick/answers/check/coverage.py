"""Compare a total's terms with the model: parts left out, counted twice, or sized wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tallystick.answers.check.labels import tags_of
from tallystick.answers.check.quantities import Quantities, Quantity, fit
from tallystick.answers.check.terms import Term

ROLES = frozenset({"token", "position", "head", "attention", "mlp", "experts", "router", "norm"})
MOST_ROUNDS = 6  # of taking apart what fits as a whole only where something else already is


@dataclass(frozen=True)
class Omission:
    """What must be added to a text's total, or taken from it, and why."""

    what: str
    parameters: int  # signed
    names: tuple[str, ...]  # of tensors, with * for the numbers of their layers
    cause: str  # left out | counted twice | another size | rounded | not in the model
    line: int | None  # of the term in the text; None for what is left out

    def to_dict(self) -> dict[str, Any]:
        """One item of ``omissions`` in the JSON."""
        return {**asdict(self), "names": list(self.names)}


class _Match(NamedTuple):
    term: Term
    quantity: Quantity


def omissions(total: Term, quantities: Quantities) -> tuple[Omission, ...] | None:
    """Corrections that lead from a total, its arithmetic mended, to the model's; None where no term
    is known.
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


def _terms(terms: Sequence[Term], quantities: Quantities) -> list[Term]:
    """Terms taken apart until something in the model has so many parameters, or there is nothing to
    take apart.
    """
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
    """The tied tensor that a term counts beside the one that it is tied to."""
    about = next((tags for label in term.labels if (tags := tags_of(label))), frozenset())
    same = (quantity for quantity in quantities.tied if quantity.parameters == term.value)
    return next((quantity for quantity in same if quantity.tags <= about), None)


def _assigned(terms: Sequence[Term], quantities: Quantities) -> tuple[list[_Match], list[Term]]:
    """Each term with a quantity of its own, no tensor in two of them; and the terms that found
    none.
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
    """Move the one term that is in the way to something else that it can be."""
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
    """What has exactly as many parameters and is not counted yet: the head, where its line speaks
    of the vocabulary.
    """
    same = (quantity for quantity in quantities.of(term.value) if not quantity.one_layer)
    free = [quantity for quantity in same if quantity.atoms and not quantity.atoms & covered]
    return max(free, key=lambda quantity: fit(quantity, term.labels, _factors(term)), default=None)


def _surplus(term: Term, covered: frozenset[int], quantities: Quantities) -> tuple[Omission, frozenset[int]]:
    """What a term is that fits nothing free, and the atoms that it covers all the same."""
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
    """What no term covers, in the fewest parts that lie in one module."""
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
    """Whether it is one thing to name; the biases of all attention are those of its projections."""
    return len(quantity.tags & ROLES) == 1 and quantity.tags != {"attention", "bias"}
