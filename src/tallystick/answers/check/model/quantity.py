"""A quantity of a model under the name that people give it, and how well a label fits it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from tallystick.answers.check.labels import KINDS, SEVERAL, tags_of
from tallystick.answers.check.model.atoms import module_of

_LIKE_TENSOR = 8  # a part of a tensor's name counts as much as four tags
_TENSOR = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")


class Quantity(NamedTuple):
    """Some atoms that people count together, over all layers or in one layer."""

    what: str
    parameters: int
    names: tuple[str, ...]
    atoms: frozenset[int]
    tags: frozenset[str]
    factors: tuple[int, ...]  # copies and shape of its only tensor; () for several tensors
    one_layer: bool = False
    tied_to: str = ""

    @property
    def component(self) -> frozenset[str]:
        """Tags of its component, without the kind of tensor and the number of layers."""
        return self.tags - KINDS

    @property
    def is_layers(self) -> bool:
        """Whether it is whole layers, perhaps without their norms."""
        return "block" in self.tags and (not self.component or {"attention", "mlp"} <= self.component)

    @property
    def is_projection(self) -> bool:
        """Whether it is some, but not all, matrices of an attention or MLP module."""
        return len(self.component) > 1 and len(self.component & {"attention", "mlp", "experts"}) == 1


def may_be(quantity: Quantity, about: frozenset[str]) -> bool:
    """Return whether a label's tags do not contradict a quantity."""
    asked, held = about - KINDS, quantity.tags - KINDS
    return not (asked and held) or bool(asked & held)


def fit(quantity: Quantity, labels: Sequence[str], factors: tuple[int, ...] = ()) -> int:
    """Return a score of how well a quantity fits the labels and the factors of a product.

    Args:
        quantity: the candidate.
        labels: texts that may name it, nearest first; nearer labels weigh more.
        factors: the factors of the product, in ascending order.
    """
    score = 0
    named = False
    for weight, label in zip((12, 4, 2, 1), filter(None, labels), strict=False):
        wanted = tags_of(label)
        about = quantity.tags
        score += weight * (
            2 * len(wanted & about) - 2 * len((wanted - about) - {"block", "all"}) - _unasked(about - wanted)
        )
        score -= 4 * weight * ("module" in about and SEVERAL.search(label) is not None)
        score += weight * _LIKE_TENSOR * (_shared(tensor, quantity.names) if (tensor := tensor_in(label)) else 0)
        score += weight * ("module" in about and _letters(module_of(quantity.names[0])) in _letters(label))
        named = bool(wanted - KINDS)
        if named:
            break
    if not named and quantity.is_projection and not quantity.one_layer:
        score -= 40  # unnamed, one projection over all layers is an unlikely meaning
    # "LayerNorm 2" under "Per block" is the block's, if else it could be the final one as well.
    within = quantity.one_layer and any("one" in tags_of(label) for label in labels[1:] if label)
    return score + within + 3 * (bool(factors) and quantity.factors == factors)


def tensor_in(label: str) -> str:
    """Return the tensor's name that a label has, or "": "transformer.h.0.attn.c_attn.weight"."""
    found = _TENSOR.search(label) if "." in label else None
    return found[0] if found else ""


def _shared(tensor: str, names: Sequence[str]) -> int:
    """Return how many parts a tensor's name shares with the end of the only name."""
    pairs = zip(reversed(tensor.split(".")), reversed(names[0].split(".")), strict=False) if len(names) == 1 else ()
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] or (pair[0].isdigit() and pair[1] == "*"), pairs))


def _letters(name: str) -> str:
    """Return the letters and digits of a name: norm2 is in "LayerNorm 2"."""
    return "".join(filter(str.isalnum, name)).lower()


def _unasked(tags: frozenset[str]) -> int:
    """Return a penalty for tags that no label mentions, such as biases or the final norm."""
    return len(tags & KINDS) + len(tags & {"bias", "scale", "shift"}) + 3 * len(tags & {"final", "token"})
