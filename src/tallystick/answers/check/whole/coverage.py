"""Compare a total's terms with the model: parts left out, counted twice, or sized wrongly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from tallystick.answers.check.labels import PROJECTIONS, nearest_tags
from tallystick.answers.check.model.quantities import Quantities, in_stack
from tallystick.answers.check.model.quantity import Quantity, fit, may_be, parts_of
from tallystick.answers.check.terms import Term

ROLES = frozenset({"token", "position", "segment", "pooler", "head", "attention", "mlp", "experts", "router", "norm"})
VOCABULARY = frozenset({"token", "head"})
LEAST_SHARE = 100  # a part is known by its size if the total is rounded by less than this share of it
DOUBTFUL = frozenset({"another size", "not in the model"})  # causes that a part may have by mistake
NEAR = 10  # a term that misses a part by less than 1/10 of it means that part
MOST_OFF = 2  # a part and a term of another size differ at most by this factor
MOST_NAME = 40  # characters of a term's name; a longer label is a sentence
MOST_ROUNDS = 6  # of splitting terms whose only match is already taken

# A label with these is a sentence or code, and names no term.
_SENTENCE = re.compile(r"[.!?;:]\s|[。！？；：`=\[\]{}|\\]|^\W*(?:assert|return|print)\b|\b(?:is|are|has|have)\b")


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
        if term.rest:
            found.append(Omission(_name(term), -int(term.value), (), "rounded", term.line))
            continue
        if (other := _misnamed(term, covered, quantities)) is not None:
            covered |= other.atoms
            continue
        omission, atoms = _surplus(term, covered, quantities)
        covered |= atoms
        found.append(omission)
    return tuple(_paired(found, _left_out(covered, quantities)))


def without_one(value: Fraction, spread: Fraction, quantities: Quantities) -> Omission | None:
    """Return the part without which the model has a lone total, or None.

    A rounded total may lack the head or an embedding, an exact one any part. The head is preferred
    to a token embedding of the same size, as the base model has none.

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
        and (quantity.tags & VOCABULARY or not spread)
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
    """Return the quantities that a term may count, by its number and labels.

    If the labels name one projection, no other one is meant: "W_v" as large as the model's W_q.
    """
    found = [quantity for quantity in quantities.of(term.value, term.spread) if not quantity.one_layer]
    about = nearest_tags(term.labels)
    if len(projections := about & PROJECTIONS) == 1 and quantities.has(projections):
        found = [quantity for quantity in found if not quantity.component & PROJECTIONS - projections]
    found = [quantity for quantity in found if not about or about & quantity.tags] or found
    return in_stack(found, term.labels) if quantities.has_stacks else found


def _tied(term: Term, quantities: Quantities) -> Quantity | None:
    """Return the tied tensor that a term counts a second time, or None."""
    about = nearest_tags(term.labels)
    same = (quantity for quantity in quantities.tied if quantity.parameters == term.value)
    return next((quantity for quantity in same if quantity.tags <= about), None)


def _assigned(terms: Sequence[Term], quantities: Quantities) -> tuple[list[_Match], list[Term]]:
    """Assign each term its own quantity, so that no tensor is in two quantities.

    Return the matches, and the terms without a match.
    """
    choices = {place: _candidates(term, quantities) for place, term in enumerate(terms) if not _tied(term, quantities)}
    pairs = sorted(
        (-fit(quantity, terms[place].labels, terms[place].sizes), order, place)
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


def _misnamed(term: Term, covered: frozenset[int], quantities: Quantities) -> Quantity | None:
    """Return an uncounted quantity with exactly as many parameters as the term, or None.

    Example: the LM head, if its line speaks of the vocabulary.
    """
    same = (quantity for quantity in quantities.of(term.value) if not quantity.one_layer)
    free = [quantity for quantity in same if quantity.atoms and not quantity.atoms & covered]
    return max(free, key=lambda quantity: fit(quantity, term.labels, term.sizes), default=None)


def _surplus(term: Term, covered: frozenset[int], quantities: Quantities) -> tuple[Omission, frozenset[int]]:
    """Return the correction for a term without a free match, and the atoms it covers."""
    found = _candidates(term, quantities)
    about = nearest_tags(term.labels)
    agree = [quantity for quantity in found if about & quantity.tags]
    if agree or (found and not about):
        return _twice(term, agree or found, quantities), frozenset()
    parts = [quantity for quantity in quantities.whole if quantity.component or quantity.is_layers]
    free = [quantity for quantity in parts if not quantity.atoms & covered]
    if term.value > 0 and (meant := _sized_as(term, free, quantities)) is not None:
        cause = "rounded" if abs(meant.parameters - term.value) <= term.spread else "another size"
        return Omission(meant.what, int(meant.parameters - term.value), meant.names, cause, term.line), meant.atoms
    if found:
        return _twice(term, found, quantities), frozenset()
    return Omission(_name(term), -int(term.value), (), "not in the model", term.line), frozenset()


def _twice(term: Term, found: Sequence[Quantity], quantities: Quantities) -> Omission:
    """Return the correction for a term that counts a part a second time."""
    best = max(found, key=lambda quantity: fit(quantity, term.labels, term.sizes))
    what = next((quantity for quantity in quantities.tied if quantity.parameters == term.value), best)
    return Omission(what.what, -best.parameters, what.names, "counted twice", term.line)


def _sized_as(term: Term, free: Sequence[Quantity], quantities: Quantities) -> Quantity | None:
    """Return the uncounted quantity that a term means, though its number differs, or None.

    A number near to a quantity's means it, unless the labels contradict; else the labels say.
    """
    about = nearest_tags(term.labels)
    near = [
        quantity
        for quantity in free
        if abs(quantity.parameters - term.value) * NEAR <= quantity.parameters and may_be(quantity, about)
    ]
    named = [quantity for quantity in quantities.labelled(term.labels) if quantity in free]
    return min(
        near or named,
        key=lambda quantity: (
            -fit(quantity, term.labels) if near else 0,
            bool(near and quantity.component),  # whole layers before layers without their norms
            abs(quantity.parameters - term.value),
        ),
        default=None,
    )


def _name(term: Term) -> str:
    """Return what a text calls a term, if its label is a name rather than a sentence."""
    label = next((label for label in term.labels if label), "")
    name = re.split(r"[(\uff08]", label)[0].strip(" ,;:-–—*")
    return name if 0 < len(name) <= MOST_NAME and not _SENTENCE.search(name) else "a term"


def _left_out(covered: frozenset[int], quantities: Quantities) -> list[Omission]:
    """Return the uncovered quantities as omissions, in few parts of one role each."""
    missing = frozenset(range(len(quantities.atoms))) - covered
    found, missing = parts_of(missing, filter(_is_one, quantities.whole))
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


def _paired(found: list[Omission], left_out: list[Omission]) -> list[Omission]:
    """Join the only unknown term with the only part left out of about its size: it sizes that part.

    Example: attention as of full heads, where the model's key and value heads are fewer.
    """
    unknown = [omission for omission in found if omission.cause == "not in the model" and omission.parameters < 0]
    like = [part for part in left_out if unknown and part.parameters < -MOST_OFF * unknown[0].parameters]
    like = [part for part in like if -unknown[0].parameters < MOST_OFF * part.parameters]
    if len(unknown) != 1 or len(like) != 1:
        return found + left_out
    term, part = unknown[0], like[0]
    sized = replace(part, parameters=part.parameters + term.parameters, cause="another size", line=term.line)
    return [sized if one is term else one for one in found] + [one for one in left_out if one is not part]


def _is_one(quantity: Quantity) -> bool:
    """Return whether a quantity has one role.

    All attention biases are excluded: they belong to the projections.
    """
    return len(quantity.tags & ROLES) == 1 and quantity.tags != {"attention", "bias"}
