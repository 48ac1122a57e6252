"""Join quantities of a model into the one that counts them together, with words for it.

>>> from fractions import Fraction
>>> from tallystick import count
>>> from tallystick.answers.check.model.quantities import Quantities
>>> of = Quantities(count("gpt2"))
>>> parts = [of.of(Fraction(number))[0] for number in (39_383_808, 84_934_656)]
>>> joined(parts, of).what
'the model, without biases and norms'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity, parts_of

MOST_ITEMS = 4  # named one by one
_IN_LAYERS = re.compile(r"\blayers?\b")
_LAYERS = re.compile(r" of (?:one layer|\d+ layers?)(?=$|,)")


def joined(parts: Sequence[Quantity], quantities: Quantities) -> Quantity | None:
    """Return the quantity of some parts together, or None if they overlap or differ in layers.

    Parts of one layer and parts over all layers are no quantity together.
    """
    if len(parts) == 1:
        return parts[0]
    apart = [one for one in parts if one.tied_to or one.some]
    own = [one for one in parts if one not in apart]
    atoms = frozenset[int]().union(*(one.atoms for one in own))
    layers = {one.one_layer for one in parts if not one.tied_to}
    if len(layers) != 1 or len(atoms) != sum(len(one.atoms) for one in own) or len(set(apart)) < len(apart):
        return None
    one_layer = layers.pop()
    names = [quantities.atoms[place].name for place in sorted(atoms)] + [name for one in apart for name in one.names]
    words = [_words(atoms, quantities, one_layer=one_layer)] if own else []
    return Quantity(
        " + ".join([*words, *(one.what for one in apart)]),
        sum(one.parameters for one in parts),
        tuple(dict.fromkeys(names)),
        atoms,
        frozenset[str]().union(*(one.tags for one in parts)),
        (),
        one_layer,
    )


def _words(atoms: frozenset[int], quantities: Quantities, *, one_layer: bool) -> str:
    """Return words for some atoms: what they are, or what lacks them in a larger quantity."""
    same = [one for one in quantities.all if one.one_layer == one_layer]
    items = _split(atoms, same, quantities)
    holders = (one for one in same if atoms < one.atoms)
    within = min(holders, key=lambda one: len(one.atoms), default=None)
    lacks = _split(within.atoms - atoms, same, quantities) if within is not None else []
    if within is not None and len(lacks) == 1 and len(items) > 1:
        joint = " and " if ", without " in within.what else ", without "
        inside = _IN_LAYERS.search(within.what) is not None
        return f"{within.what}{joint}{_LAYERS.sub('', lacks[0]) if inside else lacks[0]}"
    return " + ".join(items) if len(items) <= MOST_ITEMS or within is None else f"a part of {within.what}"


def _split(atoms: frozenset[int], same: Iterable[Quantity], quantities: Quantities) -> list[str]:
    """Return the words for the quantities that some atoms consist of."""
    found, rest = parts_of(atoms, same)
    words = [(min(one.atoms), one.what) for one in found]
    return [said for _, said in sorted(words + [(place, quantities.atoms[place].name) for place in rest])]
