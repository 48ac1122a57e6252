"""Quantities of a model that people write down: by module, role and kind, per layer and in all.

>>> from tallystick import count
>>> found = Quantities(count("gpt2")).of(Fraction(7_077_888))[0]
>>> found.what
'attention output projection of 12 layers, without its bias'
>>> found.names
('transformer.h.*.attn.c_proj.weight',)
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from fractions import Fraction
from math import ceil, floor, log

from tallystick.answers.check.labels import EMBEDDINGS, KINDS, OUTSIDE, VECTORS, nearest_tags, tags_of
from tallystick.answers.check.model.atoms import ROLE_TAGS, atoms_of
from tallystick.answers.check.model.collected import Collected
from tallystick.answers.check.model.quantity import OF_EMBEDDINGS, Quantity, fit, is_named, may_be, tensor_in
from tallystick.answers.check.model.stacks import stack_of
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of
from tallystick.derivations.arithmetic import Value, exactly
from tallystick.derivations.slips import is_one_slip

LEAST_NORM = 3  # the same of a norm, which few small numbers are
LEAST_NAMED = 5  # the same of one whose label names nothing else
LEAST_UNIQUE = 1_000_000  # of the only quantity with its number, whatever the heading says
LEAST_EXACT = 7  # digits of a lone number that is the model's but for one
LEAST_CERTAIN = 8  # the same whatever its words
VAGUE = Fraction(1, 20)  # relative rounding above which a number, such as 7B, is too vague to match
MODULES = frozenset({"attention", "mlp", "experts"})  # whose projections have names of their own
_PARTLY = re.compile(
    r"\b(?:only|approx\w*|dominant|mostly|main|matri\w+|weights?|per (?:head|token|expert))\b|[≈~]", re.IGNORECASE
)


class Quantities:
    """All quantities of a ledger, indexed by their number of parameters."""

    def __init__(self, ledger: Ledger) -> None:
        self.total = ledger.total
        self.atoms = atoms_of(ledger)
        self.tied = _tied(ledger)
        collected = Collected(self.atoms)
        self.all = collected.all
        self.whole = collected.whole  # over all layers
        tables = [quantity for quantity in self.whole if quantity.component in ({"token"}, {"head"})]
        self.rows = {max(quantity.factors) for quantity in tables if quantity.factors}  # of the vocabulary
        self._by_number: dict[int, list[Quantity]] = {}
        self._by_tags: dict[frozenset[str], list[Quantity]] = {}  # without KINDS
        for quantity in self.all:
            self._by_number.setdefault(quantity.parameters, []).append(quantity)
            self._by_tags.setdefault(quantity.component, []).append(quantity)
        self._numbers = sorted(self._by_number)
        self.numbers = self._by_number.keys() | {quantity.parameters for quantity in self.tied}
        self._place = {quantity: place for place, quantity in enumerate(self.all)}
        self.has_stacks = any(quantity.stack for quantity in self.all)  # an encoder and a decoder
        self._has_gate = any(atom.tag == "gate" for atom in self.atoms)

    def of(self, number: Fraction, spread: Fraction = Fraction(0)) -> list[Quantity]:
        """Return the quantities with this many parameters, the most usual meaning first.

        Args:
            number: parameters.
            spread: largest allowed difference. If nonzero, only quantities over all layers match.
        """
        if not spread:
            return self._by_number.get(int(number), []) if number.denominator == 1 else []
        return [quantity for quantity in self.whole if abs(quantity.parameters - number) <= spread]

    def best(
        self,
        number: Fraction,
        labels: Sequence[str],
        factors: tuple[int, ...] = (),
        matched: Collection[Quantity | None] = (),
    ) -> Quantity | None:
        """Return the quantity that a text means by a number, or None if none has that number.

        Args:
            number: parameters.
            labels: texts that may name the quantity, nearest first.
            factors: the factors of the product that gave the number, in ascending order.
            matched: quantities that earlier lines stated; others are preferred.
        """
        alike = self.of(number)
        about = self._asked(next((tags for label in labels if (tags := tags_of(label)) - KINDS), frozenset()))
        if about == {"o"} and not self.rows.isdisjoint(factors):
            about = frozenset({"head"})  # W_out of the vocabulary
        found = [one for one in alike if may_be(one, about) and is_named(one, labels, about)]
        found = _placed(found, labels, matched)
        if self.has_stacks:
            found = in_stack(found, labels)
        if not found and "block" in nearest_tags(labels):
            found = [quantity for quantity in alike if quantity.is_layers]
        if not found and factors and len(alike) == 1 and number >= LEAST_UNIQUE and not tags_of(labels[0]):
            found = alike  # "Parameters: 768 × 3072 + 768 = 2,360,064" under a heading of other words
        own = {quantity.tags for quantity in found if quantity not in matched}
        same = (quantity for quantity in self.tied if quantity.parameters == number)
        again = (quantity for quantity in same if quantity.tags <= about and quantity.tags not in own)
        return next(again, None) or max(
            found,
            key=lambda quantity: (fit(quantity, labels, factors), quantity not in matched),
            default=None,
        )

    def stated(
        self, number: Value, labels: Sequence[str], matched: Collection[Quantity | None] = ()
    ) -> Quantity | None:
        """Return the quantity that a lone number states: the best match of its labels.

        Return None if the labels name nothing, or nothing whose number is within the rounding.

        Args:
            number: the stated value, with its bounds.
            labels: texts that may name the quantity, nearest first.
            matched: quantities that earlier lines stated; others are preferred.
        """
        if number.high - number.low > VAGUE * abs(number.exact):
            return None
        named = [self._asked(tags) for label in labels if (tags := tags_of(label))]
        within = self.within(number)
        # "12 layers" under "Norms" are whole layers, if their number fits.
        for about in [*named[:1], *(tags for tags in named[1:] if tags - KINDS)]:
            found = [
                quantity
                for quantity in within
                if (quantity.component & about and is_named(quantity, labels, about))
                or (not about - KINDS and (quantity.is_layers if "block" in about else not quantity.component))
            ]
            if self.has_stacks:
                found = in_stack(found, labels)
            if found or about - KINDS:
                # Whole layers before layers without their norms.
                return max(
                    _placed(found, labels, matched),
                    key=lambda quantity: (fit(quantity, labels), not quantity.component, quantity not in matched),
                    default=None,
                )
        return None

    def mistyped(
        self, number: Fraction, labels: Sequence[str], *, total: bool, certain: bool = False
    ) -> Quantity | None:
        """Return the quantity that a lone number means, but for one digit, or None.

        Args:
            number: parameters, as written to the last digit.
            labels: texts that may name the quantity, nearest first.
            total: whether the number is called a total.
            certain: whether `LEAST_CERTAIN` digits will do, whatever the labels say.
        """
        written = str(number)
        tags = self._asked(next((tags for label in labels if (tags := tags_of(label))), frozenset()))
        if len(written) < (LEAST_NORM if "norm" in tags else LEAST_NAMED):
            return None
        about, layers = tags - KINDS, "block" in tags and tags <= KINDS
        first, last = (bisect_left(self._numbers, 10**digits) for digits in (len(written) - 1, len(written)))
        alike = [size for size in self._numbers[first:last] if is_one_slip(written, str(size))]  # of as many digits
        if not alike or number in self._by_number:
            return None  # 20,480,000 of an MLP without its biases, not 20,488,000 with them
        found = [
            quantity
            for size in alike
            for quantity in self._by_number[size]
            if (certain and len(written) >= LEAST_CERTAIN)
            or (quantity.component & about if about else total and size == self.total)
            or (layers and quantity.is_layers and quantity.one_layer == ("one" in tags))
            if len(written) >= LEAST_EXACT or quantity.component == about
        ]
        return found[0] if found and len({one.parameters for one in found}) == 1 else None

    def _asked(self, tags: frozenset[str]) -> frozenset[str]:
        """Return a label's tags in this model: W1 is the up projection of an MLP without a gate."""
        return tags if self._has_gate or "gate" not in tags else tags - {"gate"} | {"up"}

    def within(self, number: Value) -> list[Quantity]:
        """Return the quantities within the bounds of a number, in the order of `all`."""
        first, last = bisect_left(self._numbers, ceil(number.low)), bisect_right(self._numbers, floor(number.high))
        found = [quantity for size in self._numbers[first:last] for quantity in self._by_number[size]]
        return sorted(found, key=self._place.__getitem__)

    def whole_model(self, number: Value) -> Quantity | None:
        """Return the whole model if the number of a total fits it, else None."""
        return next((one for one in self.of(Fraction(self.total)) if number.low <= self.total <= number.high), None)

    def meant_by_total(self, *, one_layer: bool) -> Quantity | None:
        """Return the whole model, or one layer of it if all layers are alike."""
        if not one_layer:
            return self.whole_model(exactly(self.total))
        return next((one for one in self.all if one.tags == {"block", "one"} and one.one_layer), None)

    def over_all_layers(self, part: Quantity) -> Quantity | None:
        """Return a quantity of one layer in all layers, or None."""
        same = (one for one in self.whole if one.atoms == part.atoms)
        return next(same, None) if part.one_layer else None

    def outside_layers(self) -> dict[str, int]:
        """Return the parameters of each part outside the layers, by its tag: "head", "final"."""
        found = {}
        for tag in sorted(OUTSIDE):
            parts = [one.parameters for one in self.whole if one.component - {"norm"} == {tag}]
            if parts:
                found[tag] = max(parts)
        return found

    def are_one_layer(self, number: Fraction) -> bool:
        """Return whether one layer has this many parameters, perhaps without its biases."""
        return any(one.is_layers and one.one_layer for one in self.of(number))

    def has(self, component: frozenset[str]) -> bool:
        """Return whether the model has a part with these tags."""
        return any(component <= quantity.component for quantity in self.whole)

    def labelled(self, labels: Sequence[str]) -> list[Quantity]:
        """Return the quantities over all layers that the labels name, whatever their number."""
        wanted = next((tags for label in labels if (tags := tags_of(label) - KINDS)), None)
        if wanted is None:
            return []
        # "Key and value" is said of the attention's projections.
        return [quantity for quantity in self.whole if wanted <= quantity.component <= wanted | MODULES]

    def meant(self, label: str, number: Fraction) -> Quantity | None:
        """Return the quantity that a label names: all of one component, in one layer or in all.

        Return None if it names nothing, or nothing for certain. If the label does not say how many
        layers, the quantity nearer to `number` is returned.
        """
        about = tags_of(label)
        if number <= 0 or not about - KINDS or _PARTLY.search(label):
            return None
        kinds = about & VECTORS
        layers = {True} if "one" in about else {False} if "all" in about else {True, False}
        found = [
            quantity
            for quantity in self._named(about - KINDS)
            if quantity.tags & VECTORS == kinds and quantity.one_layer in layers
        ]
        largest = {quantity.one_layer: quantity for quantity in sorted(found, key=lambda found: found.parameters)}
        return min(largest.values(), key=lambda quantity: abs(log(quantity.parameters) - log(number)), default=None)

    def _named(self, component: frozenset[str]) -> list[Quantity]:
        """Return the quantities of a component; a key is the attention's."""
        inside = [found for module in MODULES if (found := self._by_tags.get(component | {module}))]
        return self._by_tags.get(component) or (inside[0] if len(inside) == 1 else [])


def _placed(found: list[Quantity], labels: Sequence[str], matched: Collection[Quantity | None]) -> list[Quantity]:
    """Leave out the final norm, or the norms of the layers, by what the labels and the place say.

    A norm that no label places belongs to the embeddings if no layer is counted yet, and is the
    final one behind all layers.
    """
    about = frozenset().union(*map(tags_of, labels))
    if "norm" not in about or any(map(tensor_in, labels)):
        return found
    below = [quantity for quantity in found if quantity.tags >= OF_EMBEDDINGS]
    counted = [one for one in matched if one is not None]
    if below and counted and not about & {"one", "block"} and all(one.component <= EMBEDDINGS for one in counted):
        return below  # "LayerNorm" behind the embeddings
    final = [quantity for quantity in found if "final" in quantity.tags]
    behind = not about & {"one", "block"} and any(one and one.is_layers and not one.one_layer for one in matched)
    if {"norm", "final"} <= nearest_tags(labels) or (final and (behind or "final" in about)):
        return [quantity for quantity in found if quantity in final or not {"norm", "block"} <= quantity.tags]
    return [quantity for quantity in found if quantity not in final] or final


def in_stack(found: list[Quantity], labels: Sequence[str]) -> list[Quantity]:
    """Leave out the quantities of another encoder or decoder than the one that the labels name.

    Without such a label, parts of both together are meant.
    """
    stack = stack_of(labels)
    return (
        [one for one in found if one.stack == stack]
        or [one for one in found if one.stack in ("", stack)]
        or [one for one in found if not stack]
    )


def _tied(ledger: Ledger) -> list[Quantity]:
    """Return the tensors tied to another one, which add no unique parameters."""
    return [
        Quantity(
            f"the {entry.role.replace('_', ' ')}, tied to {entry.storage}",
            int(entry.size) * entry.copies,
            (template_of(entry.name)[0].replace("{}", "*"),),
            frozenset(),
            frozenset({ROLE_TAGS.get(entry.role, entry.role)}),
            (),
            tied_to=entry.storage,
        )
        for entry in ledger.parameters
        if not entry.unique and entry.storage != entry.name
    ]
