"""The smallest quantities of a model that a text may count: tensors by name, kind and shape."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.compare.tensor_group import TensorGroup
from tallystick.answers.compare.tensor_groups import tensor_groups
from tallystick.answers.parts import kind_of
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of

NAMED = {
    "token": "token embedding",
    "position": "position embedding",
    "head": "head",
    "q": "query projection",
    "k": "key projection",
    "v": "value projection",
    "qkv": "query, key and value projections",
    "o": "attention output projection",
    "attention": "attention",
    "gate": "gate projection of the MLP",
    "up": "up projection of the MLP",
    "down": "down projection of the MLP",
    "mlp": "MLP",
    "experts": "experts",
    "router": "router",
    "norm": "norms",
    "final": "final norm",
    "segment": "segment embedding",
    "pooler": "pooler",
}

ROLE_TAGS = {"token_embedding": "token", "position_embedding": "position"}
_PACKED = {"gate_up": ("gate", "up"), "qkv": ("q", "k", "v"), "kv": ("k", "v")}

_SEGMENT = re.compile(r"token_type|segment")


class Atom(NamedTuple):
    """The smallest quantity a text may count: one kind of tensor of one module, in all layers."""

    tag: str  # a key of NAMED, or the module's own name
    role: str
    kind: str  # matrix, bias, scale, shift or vector
    name: str  # with * for the layer index
    shape: tuple[int, ...]
    copies: int  # tensors
    layers: int  # 1 outside of layers
    parameters: int  # unique parameters
    final: bool  # whether it is a norm outside the layers
    experts: int = 1  # in each layer
    active: Fraction = Fraction(1)  # share of the experts that one token uses


def atoms_of(ledger: Ledger) -> list[Atom]:
    """Return the unique parameters by name, kind and tensor shape.

    A packed projection is split into its parts.
    """
    stacks: dict[tuple[str, tuple[int, ...]], list[Entry]] = {}
    for entry in ledger.parameters:
        if entry.unique:
            shape = tuple(int(size) for size in entry.shape)
            stacks.setdefault((template_of(entry.name)[0].replace("{}", "*"), shape), []).append(entry)
    groups = _groups(ledger.parameters)
    found = []
    for (name, shape), entries in stacks.items():
        layers = _layers(entries)
        parameters = sum(int(entry.unique) * entry.copies for entry in entries)
        copies, first = sum(entry.copies for entry in entries), entries[0]
        called = template_of(first.called)[0].replace("{}", "*")
        group = groups.get(name) or groups[_open(name)]
        tag = _tag(called, first.role, group.slot)
        if tag.isdigit() and first.role == "mlp":
            tag = _direction(name, stacks)
        final = first.role == "norm" and "*" not in name
        whole = Atom(
            tag,
            first.role,
            kind_of(first),
            name,
            shape,
            copies,
            layers if "*" in name else 1,
            parameters,
            final,
            group.experts,
            Fraction(1) if first.active is None else Fraction(first.active),
        )
        found += _unpacked(whole, stacks)
    return found


def _layers(entries: Iterable[Entry]) -> int:
    """Return in how many layers some tensors are; T5 has several norms of one name in each."""
    stacks = {entry.axes[0] for entry in entries if entry.axes}
    alone = {template_of(entry.name)[1][:1] for entry in entries if not entry.axes}
    return sum(int(axis.length) for axis in stacks) + len(alone)


def _groups(entries: Iterable[Entry]) -> dict[str, TensorGroup]:
    """Return the tensor group of each name.

    Keys are the name with every index open, and the name as `template_of` writes it. The slot is
    None if the groups of one name differ in it.
    """
    found: dict[str, TensorGroup] = {}
    for group in tensor_groups(entries):
        for name in {_open(group.name), template_of(group.name.replace("{}", "0"))[0].replace("{}", "*")}:
            before = found.setdefault(name, group)
            if before.slot != group.slot:
                found[name] = before._replace(slot=None)
    return found


def _open(name: str) -> str:
    return re.sub(r"(?<=\.)(?:\d+|\{\}|\*)(?=\.)", "*", name)


def _tag(name: str, role: str, slot: str | None) -> str:
    """Return the tag of a tensor: its projection, its role, or else the name of its module."""
    if slot in NAMED or slot in _PACKED:
        return str(slot)
    if role in ROLE_TAGS:
        return "segment" if _SEGMENT.search(name) else ROLE_TAGS[role]
    if role in ("head", "norm", "router"):
        return role
    return "pooler" if "pooler" in name else module_of(name)


def _direction(name: str, stacks: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    """Return "up" or "down" for a layer of an MLP that only has a number: ff.layers.0 widens.

    torch's weights have the outputs first.
    """
    module = name.rpartition(".")[0]
    weight = next((shape for other, shape in stacks if other.rpartition(".")[0] == module and len(shape) == 2), (1, 1))
    return "up" if weight[0] > weight[1] else "down" if weight[0] < weight[1] else module_of(name)


def module_of(name: str) -> str:
    """Return the module of a tensor: c_proj for h.*.attn.c_proj.weight.

    For experts.gate_up_proj it is gate_up_proj.
    """
    parts = [part for part in name.split(".") if part != "*"]
    inside = len(parts) > 1 and re.fullmatch(r"weight|bias|scale|shift|gamma|beta", parts[-1])
    return parts[-2] if inside else parts[-1]


def _unpacked(atom: Atom, stacks: dict[tuple[str, tuple[int, ...]], list[Entry]]) -> list[Atom]:
    """Split a packed projection into its parts if its shape shows their sizes."""
    if atom.tag not in _PACKED:
        return [atom]
    tags = _PACKED[atom.tag]
    if atom.tag == "qkv":
        weight = next((shape for name, shape in stacks if name == atom.name.rpartition(".")[0] + ".weight"), ())
        if len(weight) != 2 or max(weight) != 3 * min(weight):
            return [atom._replace(tag="q k v")]  # grouped heads: the shape does not show the row split
    share = len(tags)
    largest = max(range(len(atom.shape)), key=lambda place: (atom.shape[place] % share == 0, atom.shape[place]))
    shape = tuple(size // share if place == largest else size for place, size in enumerate(atom.shape))
    return [atom._replace(tag=tag, shape=shape, parameters=atom.parameters // share) for tag in tags]
