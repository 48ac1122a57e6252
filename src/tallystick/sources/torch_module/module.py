"""Turn a live PyTorch module into a ledger; torch is imported only when used.

Shared tensors are found as in torch: first by object, then by storage and the elements that each
tensor views (`storages`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from tallystick import architectures
from tallystick.core.description import ModelDescription
from tallystick.core.dtypes import BITS
from tallystick.core.entries import Entry
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Ledger
from tallystick.core.tie_call import is_packed_away, one_shape_first, packed_before, retie_call, tied_before
from tallystick.errors import BadInput
from tallystick.sources.checkpoint.match import match
from tallystick.sources.configs.native import native_ledger, refuse_too_many
from tallystick.sources.configs.resolve import resolve
from tallystick.sources.notes import active_note, packed_notes
from tallystick.sources.roles.embedding_and_head import expected_pairs
from tallystick.sources.roles.from_names import role_of
from tallystick.sources.roles.roles import roles_of
from tallystick.sources.torch_module.declared_ties import declared_groups, output_of
from tallystick.sources.torch_module.expert_routing import shares
from tallystick.sources.torch_module.facts import ModuleFacts
from tallystick.sources.torch_module.live_tensors import identity_of, is_lazy, packed_bytes, shape_of
from tallystick.sources.torch_module.named_parameters import (
    FoundTensor,
    NamedParameter,
    everything_in,
    registered_by,
    unsaved,
    unwrapped,
)
from tallystick.sources.torch_module.storages import Storages
from tallystick.sources.torch_module.values import LiveValues

if TYPE_CHECKING:
    import torch
    from torch import nn


def ledger_from_module(module: nn.Module, *, source: str | None = None, keep: bool = False) -> Ledger:
    """Return the ledger of a live module on any device, with its tensor names and ties.

    Entries are in printing order. `unique` counts storage once, `by_name` every name, `parameters`
    every distinct Parameter object.

    Args:
        module: wrapped or not.
        source: the name for messages; the class name by default.
        keep: whether the ledger keeps the tensors alive, to compare them later. Use it if nothing
            else keeps the module; otherwise a user's model would stay in memory.

    Raises:
        BadInput: if a tensor's dtype is unknown.
    """
    found = everything_in(module)
    tensors = {item.name: item.tensor for item in found}
    facts = facts_of(module, found)
    return ledger_of_facts(facts, source=source, tensors=tensors if keep else WeakValueDictionary(tensors))


def facts_of(module: nn.Module, found: Sequence[FoundTensor]) -> ModuleFacts:
    """Return a module's tensors, config and ties as plain data.

    Args:
        module: wrapped or not.
        found: its tensors, from `everything_in`.

    Raises:
        BadInput: if a tensor's dtype is unknown.
    """
    inner = unwrapped(module)
    config = getattr(inner, "config", None)
    model_type, to_dict = getattr(config, "model_type", None), getattr(config, "to_dict", None)
    model_type = model_type if isinstance(model_type, str) else ""
    return ModuleFacts(
        entries=tuple(_with_roles(inner, [item for item in found if _is_counted(item)])),
        class_name=type(inner).__name__,
        model_type=model_type,
        config_class=type(config).__name__,
        config=to_dict() if callable(to_dict) and architectures.find(model_type) else {},
        meant=declared_groups(
            module,
            {
                item.name: NamedParameter(item.tensor, item.owner)
                for item in found
                if not item.buffer and _is_known(item)
            },
        ),
        lazy=tuple(item.name for item in found if is_lazy(item.tensor)),
        registered=registered_by(module),
        unsaved=sum(item.tensor.numel() for item in unsaved(module)),
        uncounted={item.name: item.tensor.numel() for item in found if item.held and item.held.kind == "unknown"},
    )


def _is_known(item: FoundTensor) -> bool:
    return not (item.held and item.held.kind == "unknown")


def _is_counted(item: FoundTensor) -> bool:
    return _is_known(item) and not is_lazy(item.tensor)


def ledger_of_facts(
    facts: ModuleFacts, *, source: str | None = None, tensors: Mapping[str, torch.Tensor] | None = None
) -> Ledger:
    """Return the ledger of a module's facts.

    Args:
        facts: the facts of the module.
        source: the name for messages; the class name by default.
        tensors: the module's tensors by name, so that values can be compared; None without values.
    """
    entries: Sequence[Entry] = facts.entries
    lazy = facts.lazy
    notes = (
        [f"{len(lazy)} parameters have no shape before the first forward pass: {'; '.join(lazy[:3])}"] if lazy else []
    )
    described = _described(facts)
    mismatches: dict[str, list[str]] = {}
    if described is not None:
        matched = match(list(entries), described)
        entries = [
            real._replace(role=described_entry.role, active=described_entry.active) if described_entry else real
            for real, described_entry in matched.pairs
        ]
        mismatches = matched.mismatches()
    notes += _untied_notes(entries, facts.meant, facts.registered)
    notes += active_note(entries)
    if facts.unsaved:
        notes.append(f"{facts.unsaved:,} more elements are in non-persistent buffers")
    if facts.uncounted:
        size, named = sum(facts.uncounted.values()), "; ".join(list(facts.uncounted)[:3])
        notes.append(f"{size:,} elements of the state dict are neither parameters nor buffers, so not counted: {named}")
    model = described.model if described else ModelDescription()
    return Ledger(
        tuple(entries),
        source=source or facts.class_name,
        kind="module",
        notes=(*notes, *packed_notes(entries, {})),
        model=replace(model, architecture=facts.model_type or facts.class_name),
        evidence=Evidence(
            described=described,
            mismatches=mismatches,
            declared=facts.meant,
            values=None if tensors is None else LiveValues(tensors, expected_pairs(entries), facts.registered),
        ),
    )


# -- shared storage -------------------------------------------------------------------------------


def _entries(found: list[FoundTensor]) -> list[Entry]:
    taken = _taken(found)
    first: dict[Hashable, str] = {}  # a Parameter -> its first name
    entries = []
    for position, item in enumerate(found):
        identity = first.setdefault(identity_of(item.tensor), item.name)
        storage, unique = taken[position]
        dtype = str(item.tensor.dtype).removeprefix("torch.")
        if dtype not in BITS:
            raise BadInput(f"{item.name} has the dtype {dtype}, whose size is unknown", code="unsupported")
        entries.append(
            Entry(
                name=item.name,
                shape=shape_of(item.tensor),
                role=role_of(item.name),
                dtype=dtype,
                storage=storage,
                unique=unique,
                identity=identity,
                trainable=bool(item.tensor.requires_grad),
                buffer=item.buffer,
                active=_active(item),
                packed=item.held.bytes if item.held else packed_bytes(item.tensor),
            )
        )
    return entries


def _taken(found: list[FoundTensor]) -> dict[int, tuple[str, int]]:
    """Return the storage name and the new elements of each tensor.

    Parameters come before buffers.
    """
    storages = Storages()
    order = sorted(range(len(found)), key=lambda position: found[position].buffer)
    return {position: storages.take(found[position].name, found[position].tensor) for position in order}


# -- roles ----------------------------------------------------------------------------------------


def _with_roles(module: nn.Module, found: list[FoundTensor]) -> list[Entry]:
    """Return a module's entries with their roles and, for experts, the share that a token uses."""
    head = output_of(module)
    # Compare the owner: a tied tensor also belongs to the embedding.
    known = {item.name: "head" for item in found if item.owner is head}
    entries = _entries(found)
    roles = roles_of(entries, known)
    experts = {
        entry.name: one.experts
        for entry, one in zip(entries, roles, strict=True)
        if one.role == "experts" and entry.active is None
    }
    active = shares(module, experts) if experts else {}
    return [
        entry._replace(role=one.role, active=active.get(entry.name, entry.active))
        for entry, one in zip(entries, roles, strict=True)
    ]


def _active(item: FoundTensor) -> Fraction | None:
    """Return the share of experts that one token uses, as our own models state it, or None."""
    share = getattr(item.owner, "active", None)
    return share if isinstance(share, Fraction) else None


def _described(facts: ModuleFacts) -> Ledger | None:
    """Return the ledger that a native transformers config describes, or None if it is unusable."""
    if not facts.config:
        return None
    try:
        asked = resolve({**facts.config, "architectures": [facts.class_name]}, {}, facts.config_class)
        if asked.native is None or asked.is_part:
            return None
        # A user's own class does not say which head it has.
        described = native_ledger(asked if asked.counted else asked.language)
        refuse_too_many([described], asked.source)
    except BadInput:
        return None  # the module itself is counted; its config only helps
    return described


def _untied_notes(entries: Sequence[Entry], meant: Sequence[tuple[str, ...]] | None, registered: str) -> list[str]:
    """Return notes on lost ties and their cost, or on an untied head that could be tied."""
    by_name = {entry.name: entry for entry in entries}
    if meant is None:
        pairs = [(by_name[embedding], by_name[head]) for embedding, head in expected_pairs(entries)]
        return [_apart_note(embedding, head) for embedding, head in pairs if embedding.storage != head.storage]
    alone = len(meant) == 1
    return [
        f"{name} is no longer tied to {first}, but the config says it should be"
        f" (+{by_name[name].unique:,}). Fix:"
        f" {_way_back(by_name[first], by_name[name], alone=alone, registered=registered)}"
        for first, *rest in meant
        for name in rest
        # a lazy parameter has no entry and costs nothing yet
        if {name, first} <= by_name.keys() and by_name[name].storage != by_name[first].storage
    ]


def _way_back(first: Entry, other: Entry, *, alone: bool, registered: str) -> str:
    """Return how to tie two entries again, and which one's values stay."""
    call = retie_call([] if alone else [first.name, other.name], keep=first.name)
    if packed := [entry.name for entry in (first, other) if is_packed_away(entry)]:
        return packed_before(packed[0])
    if first.shape != other.shape:
        return one_shape_first([first.shape, other.shape], call)
    return tied_before(registered, call) if registered else f"{call}"


def _apart_note(embedding: Entry, head: Entry) -> str:
    """Return what an untied head costs, or why it cannot be tied."""
    if head.shape in (embedding.shape, embedding.shape[::-1]):
        return f"{head.name} is not tied to {embedding.name}; tied, the model has {head.unique:,} fewer"
    shapes = f"{head.name} {tuple(map(int, head.shape))} and {embedding.name} {tuple(map(int, embedding.shape))}"
    return f"{shapes} have different shapes, so they cannot be tied: only one of them was resized"
