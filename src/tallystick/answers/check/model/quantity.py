"""A quantity of a model under the name that people give it, and how well a label fits it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from tallystick.answers.check.labels import (
    KINDS,
    MATRICES,
    ONE_NORM,
    OUTSIDE,
    PROJECTIONS,
    SEVERAL,
    VECTORS,
    nearest_tags,
    tags_of,
)
from tallystick.answers.check.model.atoms import module_of

_MATRICES = frozenset(MATRICES)
OF_EMBEDDINGS = frozenset({"norm", "token"})
_OF_NORMS = VECTORS - {"bias"}  # vectors that only norms have
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
    some: bool = False  # of the experts, so not all of its atoms
    stack: str = ""  # a key of `stacks.WORDS`, if it is a part of that stack alone

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


def parts_of(atoms: frozenset[int], among: Iterable[Quantity]) -> tuple[list[Quantity], frozenset[int]]:
    """Return the few quantities that some atoms consist of, the largest taken first, and the rest.

    They are in the order of the model.
    """
    found = list[Quantity]()
    for one in sorted(among, key=lambda one: -len(one.atoms)):
        if one.atoms and one.atoms <= atoms:
            atoms -= one.atoms
            found.append(one)
    return sorted(found, key=lambda one: min(one.atoms)), atoms


def may_be(quantity: Quantity, about: frozenset[str]) -> bool:
    """Return whether a label's tags do not contradict a quantity."""
    asked, held = _matrices(about), _matrices(quantity.tags)
    if asked and held and not asked & held:
        return False  # "attention K: 22 × 2048²" is not the output
    asked, held = about - KINDS, quantity.component
    if asked == {"pooler"}:
        return held == asked  # no layer with a name of its own, such as the dense one of a head
    return not (asked and held) or bool(asked & held)


def is_named(quantity: Quantity, labels: Sequence[str], about: frozenset[str]) -> bool:
    """Return whether labels name a quantity whose number alone says little.

    A bias or a norm is as small as a width, and one matrix in all layers as large as others in one.

    Args:
        quantity: the candidate.
        labels: texts that may name it.
        about: tags of the nearest one that names a component; empty if none does.
    """
    if not about - KINDS:
        small = quantity.component & {"norm", "segment"} and "position" not in quantity.component
        return not small and "bias" not in quantity.tags
    matrix = _matrices(quantity.tags)
    if matrix and not quantity.one_layer and not _matrices(about) and "all" not in about:
        return False
    return "bias" not in quantity.tags or any(tensor_in(label) or "bias" in tags_of(label) for label in labels)


def _matrices(tags: frozenset[str]) -> frozenset[str]:
    """Return the matrices of a module among some tags."""
    return (tags | (PROJECTIONS - {"o"} if "qkv" in tags else frozenset())) & _MATRICES


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
        if "norm" in wanted and quantity.tags >= OF_EMBEDDINGS and "token" in nearest_tags(labels[1:]):
            wanted |= {"token"}  # "LayerNorm" under "Embeddings"
        about = quantity.tags
        score += weight * (
            2 * len(wanted & about) - 2 * len((wanted - about) - {"block", "all"}) - _unasked(about, wanted)
        )
        score -= 4 * weight * ("module" in about and SEVERAL.search(label) is not None)
        score -= (
            4 * weight * ("norm" in about and not about.isdisjoint(_OF_NORMS) and ONE_NORM.search(label) is not None)
        )
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
    """Return how many parts a tensor's name shares with the end of the only name.

    The weight may be called as its module: "model.norm".
    """
    module = names[0].removesuffix(".weight") if not tensor.endswith((".weight", ".bias")) else names[0]
    pairs = zip(reversed(tensor.split(".")), reversed(module.split(".")), strict=False) if len(names) == 1 else ()
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] or (pair[0].isdigit() and pair[1] == "*"), pairs))


def _letters(name: str) -> str:
    """Return the letters and digits of a name: norm2 and ln_2 are in "LayerNorm 2"."""
    return "".join(filter(str.isalnum, name)).lower().replace("layernorm", "ln").replace("norm", "ln")


def _unasked(tags: frozenset[str], wanted: frozenset[str]) -> int:
    """Return a penalty for tags that no label mentions, such as biases or the final norm."""
    more = tags - wanted
    outside = len(more & OUTSIDE) if tags else 1  # a module without a usual name
    return len(more & KINDS) + len(more & VECTORS) + 3 * outside
