"""Laying the tensors of two models beside each other: by their names as far as these go, then by structure.

Structure is what a tensor is for, its layer, its order there, and its shape, transposed or not; queries, keys and values
in one tensor are laid beside the three of them. What has no counterpart is left alone, never forced.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tallystick.answers.check.projections import FUSED
from tallystick.answers.compare.tensor_group import NOWHERE, Strand
from tallystick.core.ledger import Axis
from tallystick.core.packed_names import model_name

# Modules that only wrap another, and what PEFT calls the layer that it adapts.
_WRAPPER = re.compile(
    r"(?:(?<=\.)|^)(?:base_model\.model|module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module"
    r"|base_layer|original_module)\."
)
_ROOT = re.compile(r"^(?:(?:model|transformer|gpt_neox|language_model|backbone)\.)+")

ADAPTER = re.compile(r"(^|[._])(lora_\w+|modules_to_save|ia3_l|prompt_encoder|prompt_embeddings|adapter\w*)(\.|$)")


class Pair(NamedTuple):
    """Strands of one model and their counterparts in the other, over the same layers; one side is empty where there is none."""

    a: tuple[Strand, ...]
    b: tuple[Strand, ...]
    how: str  # name | wrapped | structure | ""


def unwrapped(name: str) -> str:
    """A name without those of wrappers.

    >>> unwrapped("module._orig_mod.lm_head.weight"), unwrapped("base_model.model.h.{}.c_attn.base_layer.weight")
    ('lm_head.weight', 'h.{}.c_attn.weight')
    """
    return model_name(_WRAPPER.sub("", name))


def align(a: Sequence[Strand], b: Sequence[Strand]) -> list[Pair]:
    """Every strand of both, each layer of it once: in pairs where they belong together, alone where they do not."""
    table = _Table(a, b)
    table.match("name", _wholly)
    table.match("name", lambda strand: strand.name)
    table.match("wrapped", lambda strand: unwrapped(strand.name))
    table.match("wrapped", lambda strand: _ROOT.sub("", unwrapped(strand.name)))
    table.match("structure", _by_slot)
    for whole, pieces in FUSED.items():
        table.match_fused(whole, pieces)
    table.match_experts()
    table.match("structure", _by_slot_and_size)
    table.match("structure", _by_turned_shape, even=True)
    table.match("structure", _by_shape_but_gates)
    table.match("structure", _by_shape)
    table.match("structure", _by_turned_shape)
    table.match("structure", _by_order, even=True)
    table.match("structure", _by_order_of_norms)
    table.match("structure", _by_shape_alone, _by_shape_unnamed)
    table.match("structure", _by_shape_unnamed, _by_shape_alone)
    return [
        *table.pairs,
        *(Pair((strand,), (), "") for strand in table.a),
        *(Pair((), (strand,), "") for strand in table.b),
    ]


def in_common(pairs: Iterable[Pair]) -> bool:
    """Whether two models have anything in common: vectors of like purpose in unlike models are no likeness."""
    return any(
        pair.a and pair.b and (pair.how != "structure" or all(len(strand.shape) > 1 for strand in (*pair.a, *pair.b)))
        for pair in pairs
    )


# -- what makes two strands alike; a key that is false fits nothing -------------------------------


def _wholly(strand: Strand) -> Hashable:
    """Alike in everything: experts of one name may come in several shapes."""
    return strand._replace(layers=NOWHERE)


def _structural(strand: Strand) -> bool:
    return not strand.buffer and not ADAPTER.search(strand.name)


class _Slot(NamedTuple):
    role: str
    slot: str
    kind: str
    layered: bool
    rank: int


def _by_slot(strand: Strand) -> Hashable:
    known = _structural(strand) and strand.slot is not None
    return known and _Slot(strand.role, strand.slot or "", strand.kind, strand.layered, len(strand.inner))


def _by_slot_and_size(strand: Strand) -> Hashable:
    """Alike where one library keeps the heads in a dimension of their own."""
    known = _structural(strand) and strand.slot and strand.role == "attention"
    return known and (strand.slot, strand.kind, strand.layered, strand.size)


def _by_shape(strand: Strand) -> Hashable:
    return _structural(strand) and strand.role != "other" and (strand.role, strand.kind, strand.layered, strand.inner)


def _by_shape_but_gates(strand: Strand) -> Hashable:
    """A plain MLP has what a gated one has, but for the gate."""
    return strand.slot != "gate" and _by_shape(strand)


def _by_turned_shape(strand: Strand) -> Hashable:
    return (
        _structural(strand) and strand.role != "other" and (strand.role, strand.kind, strand.layered, _turned(strand))
    )


def _by_order(strand: Strand) -> Hashable:
    told = strand.role not in ("other", "norm") and strand.slot is None
    return _structural(strand) and told and (strand.role, strand.kind, strand.layered, len(strand.inner))


def _by_order_of_norms(strand: Strand) -> Hashable:
    return _structural(strand) and strand.role == "norm" and (strand.layered, strand.kind)


def _by_shape_alone(strand: Strand) -> Hashable:
    told = len(strand.shape) > 1 or strand.kind == "bias"
    return _structural(strand) and told and (strand.kind, strand.layered, _turned(strand))


def _by_shape_unnamed(strand: Strand) -> Hashable:
    """What a name tells nothing of may be any; two whose names tell different things are not one."""
    return strand.role == "other" and _by_shape_alone(strand)


def _turned(strand: Strand) -> tuple[int, ...]:
    """A shape that is equal for a matrix and its transpose."""
    return tuple(sorted(strand.inner)) if len(strand.inner) == 2 else strand.inner


# -- the work in progress -------------------------------------------------------------------------

_Key = Callable[[Strand], Hashable]


class _Table:
    """What is paired so far, and what is left on each side."""

    def __init__(self, a: Sequence[Strand], b: Sequence[Strand]) -> None:
        self.a, self.b = list(a), list(b)
        self.pairs: list[Pair] = []

    def match(self, how: str, key: _Key, key_of_b: _Key | None = None, *, even: bool = False) -> None:
        """Pair strands whose keys are equal: the first name with the first, the second with the second.

        `even` leaves alone what has more names on one side than on the other.
        """
        left, right = _grouped(self.a, key), _grouped(self.b, key_of_b or key)
        before = len(self.pairs)
        for alike, ones in left.items():
            others = right.get(alike, {})
            if not even or len(ones) == len(others):
                for one, other in zip(ones.values(), others.values(), strict=False):
                    self._meet([one], [other], how)
        self._leave(before)

    def match_fused(self, whole: str, pieces: Sequence[str]) -> None:
        """Pair a projection that holds several with these, whichever side has which."""
        left, right = _grouped(self.a, _by_slot), _grouped(self.b, _by_slot)
        before = len(self.pairs)
        for groups, others, turned in ((left, right, False), (right, left, True)):
            for key in groups:
                if not isinstance(key, _Slot) or key.slot != whole:
                    continue
                one = [_all(groups[key])]
                many = [_of_any_rank(others, key._replace(slot=piece)) for piece in pieces]
                if all(many):
                    self._meet(*((many, one) if turned else (one, many)), "structure")
        self._leave(before)

    def match_experts(self) -> None:
        """Pair what is left of experts that are as many and as large, however they are cut and stored."""
        left, right = (
            [s for s in side if s.role == "experts" and s.kind == "matrix" and _structural(s)]
            for side in (self.a, self.b)
        )
        before = len(self.pairs)
        for layers in {strand.layers for strand in left}:
            ones, others = ([s for s in side if s.layers == layers] for side in (left, right))
            counts = {s.experts for s in (*ones, *others)} - {1}  # 1 where all of them are one matrix
            if others and len(counts) < 2 and _size(ones) == _size(others):
                self.pairs.append(Pair(tuple(ones), tuple(others), "structure"))
        self._leave(before)

    def _meet(self, ones: list[list[Strand]], others: list[list[Strand]], how: str) -> None:
        """Pair the layers that all lists of strands have."""
        lists = [*ones, *others]
        edges = sorted(
            {edge for strands in lists for strand in strands for edge in (strand.layers.start, sum(strand.layers))}
        )
        covering = [_covering(strands, edges) for strands in lists]
        for place, (start, end) in enumerate(pairwise(edges)):
            if all(place in strands for strands in covering):
                cut = tuple(strands[place]._replace(layers=Axis(start, end - start)) for strands in covering)
                self.pairs.append(Pair(cut[: len(ones)], cut[len(ones) :], how))

    def _leave(self, before: int) -> None:
        """Take what was paired since `before` out of what is left."""
        new = self.pairs[before:]
        if not new:
            return
        for side, left in (("a", self.a), ("b", self.b)):
            gone: dict[Strand, list[Axis]] = {}
            for pair in new:
                for strand in getattr(pair, side):
                    gone.setdefault(strand._replace(layers=NOWHERE), []).append(strand.layers)
            left[:] = [
                rest for strand in left for rest in without(strand, gone.get(strand._replace(layers=NOWHERE), ()))
            ]


def _of_any_rank(groups: Mapping[Hashable, dict[str, list[Strand]]], key: _Slot) -> list[Strand]:
    """What has a key, or its name at least: some libraries keep heads in a dimension of their own."""
    ranks = (key.rank, key.rank + 1, key.rank - 1)
    return next((_all(groups[at]) for rank in ranks if (at := key._replace(rank=rank)) in groups), [])


def _size(strands: Iterable[Strand]) -> int:
    return sum(strand.size * strand.copies for strand in strands)


def _all(groups: dict[str, list[Strand]]) -> list[Strand]:
    return [strand for strands in groups.values() for strand in strands]


def _grouped(strands: Iterable[Strand], key: _Key) -> dict[Hashable, dict[str, list[Strand]]]:
    groups: dict[Hashable, dict[str, list[Strand]]] = {}
    for strand in strands:
        if alike := key(strand):
            groups.setdefault(alike, {}).setdefault(f"{strand.half}{strand.name}", []).append(strand)
    return groups


def _covering(strands: Iterable[Strand], edges: Sequence[int]) -> dict[int, Strand]:
    """For each stretch between two edges, counted from 0, the first strand that has its layers."""
    found: dict[int, Strand] = {}
    for strand in strands:
        for place in range(bisect_left(edges, strand.layers.start), bisect_left(edges, sum(strand.layers))):
            found.setdefault(place, strand)
    return found


def without(strand: Strand, gone: Sequence[Axis]) -> list[Strand]:
    """What is left of a strand without some of its layers."""
    if not gone:
        return [strand]
    rest, start = [], strand.layers.start
    for layers in sorted(gone):
        if layers.start > start and start < sum(strand.layers):
            rest.append(strand._replace(layers=Axis(start, min(layers.start, sum(strand.layers)) - start)))
        start = max(start, sum(layers))
    if start < sum(strand.layers):
        rest.append(strand._replace(layers=Axis(start, sum(strand.layers) - start)))
    return rest
