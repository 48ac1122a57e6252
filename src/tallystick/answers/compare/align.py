"""Match the tensors of two models: by name if possible, then by structure.

Structure is a tensor's role, layer, order in the layer, and shape, transposed or not. A fused QKV
tensor is matched with the three separate ones. A tensor without a counterpart stays alone; no match
is forced.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tallystick.answers.compare.projections import FUSED
from tallystick.answers.compare.tensor_group import NOWHERE, TensorGroup
from tallystick.core.entries import Axis
from tallystick.core.packed_names import model_name

# Modules that only wrap another module, and PEFT's names for an adapted layer.
_WRAPPER = re.compile(
    r"(?:(?<=\.)|^)(?:base_model\.model|module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module"
    r"|base_layer|original_module)\."
)
_ROOT = re.compile(r"^(?:(?:model|transformer|gpt_neox|language_model|backbone)\.)+")

ADAPTER = re.compile(r"(^|[._])(lora_\w+|modules_to_save|ia3_l|prompt_encoder|prompt_embeddings|adapter\w*)(\.|$)")


class Pair(NamedTuple):
    """Groups of one model and their counterparts in the other; one side may be empty."""

    a: tuple[TensorGroup, ...]
    b: tuple[TensorGroup, ...]
    how: str  # name | wrapped | structure | ""


def unwrapped(name: str) -> str:
    """Return a name without the names of wrapper modules.

    >>> unwrapped("module._orig_mod.lm_head.weight")
    'lm_head.weight'
    >>> unwrapped("base_model.model.h.{}.c_attn.base_layer.weight")
    'h.{}.c_attn.weight'
    """
    return model_name(_WRAPPER.sub("", name))


def align(a: Sequence[TensorGroup], b: Sequence[TensorGroup]) -> list[Pair]:
    """Match two models' groups; each layer of each group is in exactly one pair.

    Args:
        a: groups of the first model.
        b: groups of the second model.

    Returns:
        Pairs of counterparts; a group without a counterpart is a pair with one empty side.
    """
    table = _Table(a, b)
    table.match("name", _wholly)
    table.match("name", lambda group: group.name)
    table.match("wrapped", lambda group: unwrapped(group.name))
    table.match("wrapped", lambda group: _ROOT.sub("", unwrapped(group.name)))
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
        *(Pair((group,), (), "") for group in table.a),
        *(Pair((), (group,), "") for group in table.b),
    ]


def in_common(pairs: Iterable[Pair]) -> bool:
    """Return whether two models share tensors; vectors matched by structure do not count."""
    return any(
        pair.a and pair.b and (pair.how != "structure" or all(len(group.shape) > 1 for group in (*pair.a, *pair.b)))
        for pair in pairs
    )


# -- keys under which two groups match; a false key matches nothing -------------------------------


def _wholly(group: TensorGroup) -> Hashable:
    """Equal in everything but layers: experts of one name may come in several shapes."""
    return group._replace(layers=NOWHERE)


def _structural(group: TensorGroup) -> bool:
    return not group.buffer and not ADAPTER.search(group.name)


class _Slot(NamedTuple):
    role: str
    slot: str
    kind: str
    layered: bool
    rank: int


def _by_slot(group: TensorGroup) -> Hashable:
    known = _structural(group) and group.slot is not None
    return known and _Slot(group.role, group.slot or "", group.kind, group.layered, len(group.inner))


def _by_slot_and_size(group: TensorGroup) -> Hashable:
    """Match attention tensors of libraries that keep the heads in their own dimension."""
    known = _structural(group) and group.slot and group.role == "attention"
    return known and (group.slot, group.kind, group.layered, group.size)


def _by_shape(group: TensorGroup) -> Hashable:
    return _structural(group) and group.role != "other" and (group.role, group.kind, group.layered, group.inner)


def _by_shape_but_gates(group: TensorGroup) -> Hashable:
    """Match a plain MLP with a gated one, without the gate."""
    return group.slot != "gate" and _by_shape(group)


def _by_turned_shape(group: TensorGroup) -> Hashable:
    return _structural(group) and group.role != "other" and (group.role, group.kind, group.layered, _turned(group))


def _by_order(group: TensorGroup) -> Hashable:
    told = group.role not in ("other", "norm") and group.slot is None
    return _structural(group) and told and (group.role, group.kind, group.layered, len(group.inner))


def _by_order_of_norms(group: TensorGroup) -> Hashable:
    return _structural(group) and group.role == "norm" and (group.layered, group.kind)


def _by_shape_alone(group: TensorGroup) -> Hashable:
    told = len(group.shape) > 1 or group.kind == "bias"
    return _structural(group) and told and (group.kind, group.layered, _turned(group))


def _by_shape_unnamed(group: TensorGroup) -> Hashable:
    """Match groups whose name tells no role with any group; known roles must not contradict."""
    return group.role == "other" and _by_shape_alone(group)


def _turned(group: TensorGroup) -> tuple[int, ...]:
    """Return a shape that is equal for a matrix and its transpose."""
    return tuple(sorted(group.inner)) if len(group.inner) == 2 else group.inner


# -- matching in progress -------------------------------------------------------------------------

_Key = Callable[[TensorGroup], Hashable]


class _Table:
    """The pairs found so far, and the unmatched groups of each side."""

    def __init__(self, a: Sequence[TensorGroup], b: Sequence[TensorGroup]) -> None:
        self.a, self.b = list(a), list(b)
        self.pairs: list[Pair] = []

    def match(self, how: str, key: _Key, key_of_b: _Key | None = None, *, even: bool = False) -> None:
        """Pair groups with equal keys, in order of their names.

        With `even`, a key with more names on one side than on the other is skipped.
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
        """Pair a fused projection with its separate pieces, whichever model has the fused one."""
        left, right = _grouped(self.a, _by_slot), _grouped(self.b, _by_slot)
        before = len(self.pairs)
        for slots, others, turned in ((left, right, False), (right, left, True)):
            for key in slots:
                if not isinstance(key, _Slot) or key.slot != whole:
                    continue
                one = [_all(slots[key])]
                many = [_of_any_rank(others, key._replace(slot=piece)) for piece in pieces]
                if all(many):
                    self._meet(*((many, one) if turned else (one, many)), "structure")
        self._leave(before)

    def match_experts(self) -> None:
        """Pair remaining experts of equal number and size, however they are split or stored."""
        left, right = (
            [s for s in side if s.role == "experts" and s.kind == "matrix" and _structural(s)]
            for side in (self.a, self.b)
        )
        before = len(self.pairs)
        for layers in {group.layers for group in left}:
            ones, others = ([s for s in side if s.layers == layers] for side in (left, right))
            counts = {s.experts for s in (*ones, *others)} - {1}  # 1 if all experts are in one matrix
            if others and len(counts) < 2 and _size(ones) == _size(others):
                self.pairs.append(Pair(tuple(ones), tuple(others), "structure"))
        self._leave(before)

    def _meet(self, ones: list[list[TensorGroup]], others: list[list[TensorGroup]], how: str) -> None:
        """Pair the layers that all lists of groups have."""
        lists = [*ones, *others]
        edges = sorted(
            {edge for groups in lists for group in groups for edge in (group.layers.start, sum(group.layers))}
        )
        covering = [_covering(groups, edges) for groups in lists]
        for place, (start, end) in enumerate(pairwise(edges)):
            if all(place in groups for groups in covering):
                cut = tuple(groups[place]._replace(layers=Axis(start, end - start)) for groups in covering)
                self.pairs.append(Pair(cut[: len(ones)], cut[len(ones) :], how))

    def _leave(self, before: int) -> None:
        """Remove the groups that were paired since `before` from the unmatched ones."""
        new = self.pairs[before:]
        if not new:
            return
        for side, left in (("a", self.a), ("b", self.b)):
            gone: dict[TensorGroup, list[Axis]] = {}
            for pair in new:
                for group in getattr(pair, side):
                    gone.setdefault(group._replace(layers=NOWHERE), []).append(group.layers)
            left[:] = [rest for group in left for rest in without(group, gone.get(group._replace(layers=NOWHERE), ()))]


def _of_any_rank(slots: Mapping[Hashable, dict[str, list[TensorGroup]]], key: _Slot) -> list[TensorGroup]:
    """Return the groups of a key, or of the same key with one dimension more or fewer."""
    ranks = (key.rank, key.rank + 1, key.rank - 1)
    return next((_all(slots[at]) for rank in ranks if (at := key._replace(rank=rank)) in slots), [])


def _size(groups: Iterable[TensorGroup]) -> int:
    return sum(group.size * group.copies for group in groups)


def _all(slots: dict[str, list[TensorGroup]]) -> list[TensorGroup]:
    return [group for groups in slots.values() for group in groups]


def _grouped(groups: Iterable[TensorGroup], key: _Key) -> dict[Hashable, dict[str, list[TensorGroup]]]:
    slots: dict[Hashable, dict[str, list[TensorGroup]]] = {}
    for group in groups:
        if alike := key(group):
            slots.setdefault(alike, {}).setdefault(f"{group.half}{group.name}", []).append(group)
    return slots


def _covering(groups: Iterable[TensorGroup], edges: Sequence[int]) -> dict[int, TensorGroup]:
    """Return, for each interval between two edges, the first group with those layers."""
    found: dict[int, TensorGroup] = {}
    for group in groups:
        for place in range(bisect_left(edges, group.layers.start), bisect_left(edges, sum(group.layers))):
            found.setdefault(place, group)
    return found


def without(group: TensorGroup, gone: Sequence[Axis]) -> list[TensorGroup]:
    """Return the remaining parts of a group after some of its layers are removed."""
    if not gone:
        return [group]
    rest, start = [], group.layers.start
    for layers in sorted(gone):
        if layers.start > start and start < sum(group.layers):
            rest.append(group._replace(layers=Axis(start, min(layers.start, sum(group.layers)) - start)))
        start = max(start, sum(layers))
    if start < sum(group.layers):
        rest.append(group._replace(layers=Axis(start, sum(group.layers) - start)))
    return rest
