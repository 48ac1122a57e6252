"""Word each difference between two models: its kind, its dimension, and its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from tallystick.answers.compare.align import ADAPTER, Pair, without
from tallystick.answers.compare.projections import FUSED
from tallystick.answers.compare.tensor_group import TensorGroup
from tallystick.core.entries import EMBEDDING_ROLES, Axis

TIES = ("tie-lost", "tie-gained")

# Words for tensors without a counterpart, if their names tell what they are.
_NOUNS = tuple(
    (re.compile(pattern), word, said)
    for pattern, word, said in (
        (r"\.modules_to_save\.", "adapters", "copies made by modules_to_save"),
        (r"[._]lora_", "adapters", "LoRA matrices"),
        (ADAPTER.pattern, "adapters", "adapters"),
        (
            r"(^|[._])(absmax|nested_absmax|quant_map|SCB|g_idx|q?zeros|q?scales?|weight_scale\w*|weight_zero_point|qweight"
            r"|weight_packed|weight_qdata|weight_shape|scale_inv|input_scale)$",
            "packed",
            "scales of quantised weights",
        ),
        (
            r"(^|[._])(mask|masked_bias|causal_mask|tril|inv_freq|position_ids)$",
            "buffers",
            "masks and tables counted as parameters",
        ),
    )
)

# Vocabularies are padded for tensor cores and for sharding, most often to a multiple of 64.
PADDINGS = (64, 128, 256, 512, 32, 16, 8)


@dataclass(frozen=True)
class Cause:
    """One cause of a difference: a stable word, a description, and its parameters."""

    cause: str
    what: str
    parameters: int
    names: tuple[str, ...]  # tensors, with * for layer and expert numbers
    keys: tuple[str, ...] = ()  # the config keys that cause it, if configs are known


def tie_cause(
    tied: Mapping[str, str], parameters: int, *, lost: bool, keys: tuple[str, ...] = (), unlike: str = ""
) -> Cause:
    """Return the cause for ties that only one of the models has.

    Args:
        tied: each tied name, with the name that holds its storage.
        parameters: parameters that the second model has in addition.
        lost: whether the first model has the ties and the second does not.
        keys: the config keys that say so.
        unlike: label of the first model, if nothing says that both should be tied.
    """
    word = "tie-lost" if lost else "tie-gained"
    if unlike:
        verb, more = ("is not", f", unlike in {unlike}") if lost else ("is", f", unlike in {unlike}")
    else:
        verb, more = ("is no longer" if lost else "is now"), ""
    what = "; ".join(f"{name} {verb} tied to {holder}{more}" for name, holder in tied.items())
    return Cause(word, what, parameters, tuple(dict.fromkeys(name for tie in tied.items() for name in tie)), keys)


def padded(old: int, new: int) -> str:
    """Return the words to add to a vocabulary's change if it is padding.

    >>> padded(50257, 50304), padded(50257, 50258)
    (' (padded to a multiple of 64)', '')
    """
    multiple = next((by for by in PADDINGS if 0 < new - old < by and new % by == 0), None)
    return f" (padded to a multiple of {multiple})" if multiple else ""


def in_order(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Sort the causes by size, largest first, with ties first among equals."""
    return tuple(sorted(causes, key=lambda cause: (-abs(cause.parameters), cause.cause not in TIES)))


class Side(NamedTuple):
    """Facts about one whole model that are needed to word a difference."""

    label: str
    width: int  # hidden size of the residual stream; 0 if unknown
    layers: tuple[Axis, ...]  # layers that some tensor is in, as few runs as there are gaps
    stacks: frozenset[str]  # name prefixes before the layer number that the other model has too
    experts: bool  # whether it has experts or a router
    meant: frozenset[str]  # names that should be tied, whether they are or not
    twice: Mapping[str, str]  # names that it stores twice, with the words for that

    @classmethod
    def of(
        cls, label: str, groups: Sequence[TensorGroup], paired: Iterable[TensorGroup], meant: Iterable[str] = ()
    ) -> Side:
        """Collect the facts from all groups, from the paired ones, and from the declared ties.

        Args:
            label: name of the model in sentences.
            groups: all groups of the model.
            paired: the groups with a counterpart in the other model.
            meant: names that should be tied.
        """
        own = [group for group in groups if not group.buffer and not ADAPTER.search(group.name)]
        norms = [group.shape[0] for group in own if group.role == "norm" and len(group.shape) == 1]
        tables = [group.shape[-1] for group in own if group.role == "token_embedding" and group.shape]
        stacks = frozenset(group.stack for group in paired if group.layered and not group.buffer)
        layers = {group.layers for group in own if group.layered and group.stack in stacks}
        experts = any(group.role in ("experts", "router") for group in own)
        width = max(norms, default=0) or max(tables, default=0)
        return cls(label, width, _joined(layers), stacks, experts, frozenset(meant), _twice(own, label))

    @property
    def depth(self) -> int:
        """Number of layers."""
        return sum(layers.length for layers in self.layers)


def _twice(groups: Sequence[TensorGroup], label: str) -> dict[str, str]:
    """Return the projections that one model holds both fused and split, with words for each."""
    modules: dict[tuple[object, ...], dict[str, list[TensorGroup]]] = {}
    for group in groups:
        if group.slot and not group.shared:
            module = (group.role, group.trunk, group.kind, group.layers)
            modules.setdefault(module, {}).setdefault(group.slot, []).append(group)
    said: dict[str, str] = {}
    for slots in modules.values():
        for whole, split in FUSED.items():
            if whole not in slots or not all(piece in slots for piece in split):
                continue
            one, pieces = slots[whole], [group for piece in split for group in slots[piece]]
            if sum(s.size * s.each for s in one) == sum(s.size * s.each for s in pieces):
                words = [" and ".join(dict.fromkeys(s.word for s in groups)) for groups in (pieces, one)]
                said |= dict.fromkeys((s.name for s in pieces), f"{words[0]} in {label} (a second copy of {words[1]})")
                said |= dict.fromkeys((s.name for s in one), f"{words[1]} in {label} (a second copy of {words[0]})")
    return said


def _joined(runs: Iterable[Axis]) -> tuple[Axis, ...]:
    """Merge runs of numbers that overlap or touch."""
    joined: list[Axis] = []
    for start, length in sorted(runs):
        if joined and start <= sum(joined[-1]):
            first = joined[-1].start
            joined[-1] = Axis(first, max(sum(joined[-1]), start + length) - first)
        else:
            joined.append(Axis(start, length))
    return tuple(joined)


def causes_of(pairs: Sequence[Pair], a: Side, b: Side) -> list[Cause]:
    """Return all differences; differences of one kind and wording are summed.

    Args:
        pairs: the matched groups, from `align`.
        a: facts about the first model.
        b: facts about the second model.
    """
    counterparts = {one.name: pair.b[0].title for pair in pairs if pair.b for one in pair.a}
    sums: dict[tuple[str, str], tuple[int, dict[str, None]]] = {}
    for pair in pairs:
        for cause in _both(pair, a, b, counterparts) if pair.a and pair.b else _alone(pair, a, b):
            parameters, names = sums.get((cause.cause, cause.what), (0, {}))
            sums[cause.cause, cause.what] = (parameters + cause.parameters, {**names, **dict.fromkeys(cause.names)})
    return [Cause(word, what, parameters, tuple(names)) for (word, what), (parameters, names) in sums.items()]


# -- a group in both models -----------------------------------------------------------------------


def _both(pair: Pair, a: Side, b: Side, counterparts: Mapping[str, str]) -> Iterator[Cause]:
    one, other = pair.a[0], pair.b[0]
    gap = _count(pair.b) - _count(pair.a)
    names = tuple(group.title for group in pair.b)
    if one.buffer != other.buffer:
        side = b.label if one.buffer else a.label
        yield Cause("buffers", f"buffers counted as parameters in {side}", gap, names)
    elif one.shared != other.shared and gap:
        holder = counterparts.get(one.holder, one.holder) if one.shared else other.holder
        meant = other.name in b.meant if one.shared else one.name in a.meant
        unlike = "" if meant else a.label
        yield tie_cause({other.title: holder.replace("{}", "*")}, gap, lost=one.shared, unlike=unlike)
    elif not gap and (said := _stored_otherwise(pair, a.label, b.label)):
        yield Cause("projections-fused", said, 0, (*(group.title for group in pair.a), *names))
    elif gap and _packed(one) != _packed(other):
        packed = b.label if _packed(other) else a.label
        dtype = (other if _packed(other) else one).dtype
        yield Cause("packed", f"packed quantised weights in {packed} (several values per {dtype})", gap, names)
    elif gap:
        yield from _dimensions(pair, a, b)


def _count(groups: Iterable[TensorGroup]) -> int:
    return sum(group.parameters for group in groups)


def _packed(group: TensorGroup) -> bool:
    return "int" in group.dtype


def _stored_otherwise(pair: Pair, label_a: str, label_b: str) -> str | None:
    """Word how equal tensors are stored differently: fused, stacked, or both."""
    stacked = [group.role == "experts" and group.each == 1 for group in (pair.a[0], pair.b[0])]
    if len(pair.a) == len(pair.b) == 1 and stacked[0] == stacked[1]:
        return None
    many, few = (pair.a, pair.b) if len(pair.a) > len(pair.b) else (pair.b, pair.a)
    same = " and ".join(", ".join(group.word for group in groups) for groups in (many, few))
    how = f"{'fused' if few is pair.b else 'split'} in {label_b}" if len(many) > len(few) else ""
    if stacked[0] != stacked[1]:
        where = label_a if stacked[0] else label_b
        how = f"fused and stacked in {label_b}" if how == f"fused in {where}" else f"{how}, stacked in {where}"
    return f"{same} are the same, {how.removeprefix(', ') or f'split differently in {label_b}'}"


class _Dimension(NamedTuple):
    word: str
    said: str  # such as "MLP width"
    size: int


def _dimensions(pair: Pair, a: Side, b: Side) -> Iterator[Cause]:
    """Change one dimension after another from a's size to b's, and yield what each adds."""
    mine, others = _named(pair.a, a.width), _named(pair.b, b.width)
    names = tuple(group.title for group in pair.b)
    layers = pair.a[0].layers.length
    sizes = [dim.size for dim in mine]
    whole = prod(sizes) * layers == _count(pair.a) and prod(dim.size for dim in others) * layers == _count(pair.b)
    if not whole or [dim.said for dim in mine] != [dim.said for dim in others]:
        yield _reshaped(pair, names)
        return
    for place, (old, new) in enumerate(zip(mine, others, strict=True)):
        before = prod(sizes)
        sizes[place] = new.size
        if old.size == new.size:
            continue
        word, what = old.word, f"{old.said} {old.size:,} → {new.size:,}"
        if word == "vocabulary":
            what += padded(old.size, new.size)
        if a.width != b.width and old.size * b.width == new.size * a.width:  # 4d → 4d' is not a change of its own
            word, what = "width", f"width {a.width:,} → {b.width:,}"
        yield Cause(word, what, (prod(sizes) - before) * layers, names)


def _reshaped(pair: Pair, names: tuple[str, ...]) -> Cause:
    """Return the cause for a group whose dimensions differ in kind from its counterpart's."""
    gap = _count(pair.b) - _count(pair.a)
    shapes = (" + ".join("×".join(map(str, group.shape)) for group in groups) for groups in (pair.a, pair.b))
    return Cause(pair.a[0].role, f"{pair.a[0].role} with a different shape: {' → '.join(shapes)}", gap, names)


def _named(groups: Sequence[TensorGroup], width: int) -> list[_Dimension]:
    """Return the named dimensions of a group or fused set, independent of transposition."""
    first = groups[0]
    word, said = _across(groups)
    dims = []
    if first.role == "experts":
        dims = [_Dimension("experts", "experts", first.experts)]
    elif first.each > 1:
        dims = [_Dimension(first.role, f"copies of {first.word}", first.each)]
    if len(first.inner) not in (1, 2):
        return [*dims, *(_Dimension(first.role, f"dimension {place}", size) for place, size in enumerate(first.inner))]
    if len(first.inner) == 1:
        along, rest = 0, []
    elif first.role in EMBEDDING_ROLES or width == first.inner[1]:
        along, rest = 0, [_Dimension("width", "width", first.inner[1])]
    elif width == first.inner[0]:
        along, rest = 1, [_Dimension("width", "width", first.inner[0])]
    else:
        along, rest = 0, [_Dimension(word, f"{said}, columns", first.inner[1])]
    across = sum(group.inner[along] for group in groups)
    if _slot(groups) == "gate_up" and across % 2 == 0:  # one width, whether gate and up are two matrices or one
        across //= 2
        rest = [*rest, _Dimension(word, "gate and up", 2)]
    return [*dims, _Dimension(word, said, across), *rest]


def _slot(groups: Sequence[TensorGroup]) -> str | None:
    """Return the projection that one group is, or that several groups are together."""
    pieces = tuple(group.slot for group in groups)
    return pieces[0] if len(groups) == 1 else next((whole for whole, split in FUSED.items() if split == pieces), None)


def _across(groups: Sequence[TensorGroup]) -> tuple[str, str]:
    """Name the dimension other than the hidden size, by role."""
    role, slot = groups[0].role, _slot(groups)
    if role == "attention":
        return {
            "qkv": ("kv-heads", "queries, keys and values"),
            "kv": ("kv-heads", "keys and values"),
            "k": ("kv-heads", "keys and values"),
            "v": ("kv-heads", "keys and values"),
        }.get(slot or "", ("heads", "queries"))
    return {
        "token_embedding": ("vocabulary", "vocabulary"),
        "head": ("vocabulary", "vocabulary"),
        "position_embedding": ("positions", "positions"),
        "mlp": ("mlp-width", "MLP width"),
        "experts": ("experts", "expert width"),
        "router": ("experts", "experts"),
        "norm": ("norms", "norm width"),
    }.get(role, (role, f"{role} size"))


# -- a group in one model only --------------------------------------------------------------------


def _alone(pair: Pair, a: Side, b: Side) -> Iterator[Cause]:
    [group] = pair.a or pair.b
    side, there, sign = (a, b, -1) if pair.a else (b, a, 1)
    if not group.parameters:
        return
    beside = [group]
    if group.layered and group.stack in side.stacks and not ADAPTER.search(group.name):
        above = without(group, there.layers)  # in layers that the other model does not have
        beside = without(group, [one.layers for one in above])
        for one in above:
            yield Cause("layers", f"layers {a.depth:,} → {b.depth:,}", sign * one.parameters, (group.title,))
    for one in beside:
        word, said = _noun(one)
        if twice := side.twice.get(one.name):
            yield Cause("stored-twice", twice, sign * one.parameters, (one.title,))
            continue
        if one.role == "mlp" and there.experts and not side.experts:
            word, said = "experts", "dense MLP"
        yield Cause(word, f"{said} ({side.label} only)", sign * one.parameters, (group.title,))


def _noun(group: TensorGroup) -> tuple[str, str]:
    """Return a word and a phrase for a tensor without a counterpart."""
    for pattern, word, said in _NOUNS:
        if pattern.search(group.name):
            return word, said
    if group.kind == "shift":
        return "norms", "norm shifts"
    if group.kind == "bias" and group.role != "other":
        return "biases", "biases"
    if group.role == "mlp" and group.slot == "gate":
        return "mlp-gate", "MLP gate"
    return {
        "token_embedding": ("embeddings", "token embedding"),
        "position_embedding": ("positions", "learned position embeddings"),
        "head": ("head", "separate LM head"),
        "norm": ("norms", "norms"),
        "experts": ("experts", "experts"),
        "router": ("experts", "routers"),
        "attention": ("attention", "attention tensors"),
        "mlp": ("mlp", "MLP tensors"),
        "other": ("other", "tensors without a counterpart"),
    }.get(group.role, (group.role, f"{group.role} tensors"))
