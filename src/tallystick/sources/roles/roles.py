"""Find each tensor's role from its name, shape, position and neighbours.

Live modules and files share this finder, so one model has the same roles in both. A config that
describes the model overrides these roles later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tallystick.core.entries import Entry
from tallystick.sources.roles.experts import find_experts
from tallystick.sources.roles.stacks import Stack, above, block_of, stacked, width_of

_EMBEDS = re.compile(r"emb|wte|tok|vocab", re.IGNORECASE)
_HEAD = re.compile(r"head|logits?|unemb|out|final|proj|decoder|classifier|generator|\bfc|lm", re.IGNORECASE)
_SCALES = re.compile(r"(^|\.)(weight|gamma|g|scale|norm\w*)$")
_CELL = re.compile(r"(^|\.)(weight|bias)_[ih]h$")  # a GRU or LSTM cell, such as a gate of the residual stream
_SUBLAYERS = frozenset({"attention", "mlp", "ssm", "experts", "conv"})
_WIDEST_KERNEL = 32  # tokens of a convolution's kernel


class RoleFound(NamedTuple):
    """The role of one entry."""

    role: str
    experts: int = 0  # number of experts in the layer, if a router determines it


def roles_of(entries: Sequence[Entry], known: Mapping[str, str] | None = None) -> list[RoleFound]:
    """Return the roles of a model's entries, in their order.

    Args:
        entries: single or stacked tensors, each with the role from its name.
        known: roles that the model itself states, by the entries' names.
    """
    keys, stacks = stacked(entries, known or {})
    find_roles(list(stacks.values()))
    found = {key: RoleFound(stack.role, stack.experts) for key, stack in stacks.items()}
    return [RoleFound(entry.role) if key is None else found[key] for entry, key in zip(entries, keys, strict=True)]


def find_roles(stacks: Sequence[Stack]) -> None:
    """Set the roles that structure implies, if it says more than the names.

    Args:
        stacks: all stacks of the model; they are changed in place.
    """
    find_experts(stacks)
    width = width_of(stacks)
    _find_ends(stacks, width)
    _find_sublayers(stacks, width)
    _ask_neighbours(stacks)
    matrices = {(one.module, one.leaf) for one in stacks if len(one.shape) > 1}
    held = Counter(module for module, _ in matrices)
    for stack in stacks:
        if stack.role == "other":
            block = block_of(stack.template)
            inside = stack.shape == (width,) and bool(block) and stack.module == block and "bias" not in stack.leaf
            others = held[stack.module] - ((stack.module, stack.leaf) in matrices)
            stack.role = "norm" if inside else _alone(stack, others)
    _find_shifts(stacks)


# -- both ends of the model -----------------------------------------------------------------------


def _find_ends(stacks: Sequence[Stack], width: int) -> None:
    """Set the roles of the token embedding and of the head, both outside of the blocks."""
    outside = [one for one in stacks if len(one.shape) == 2 and one.single and not block_of(one.template)]
    tables = [one for one in stacks if len(one.shape) == 2 and one.role == "token_embedding"]
    if not tables:
        tables = _unnamed_table(outside, width)
    shapes = {shape for table in tables for shape in (table.shape, table.shape[::-1])}
    for stack in outside:
        square = stack.shape[0] == stack.shape[1]  # vocabulary equals width: any matrix may have that shape
        open_ = ("other",) if square else ("other", "mlp", "attention", "router")
        if stack.shape in shapes and stack.role in open_ and (not square or _HEAD.search(stack.template)):
            stack.role = "token_embedding" if _is_table(stack.template) else "head"
    rows = {table.shape[0] for table in tables}
    for stack in stacks:
        # Tables of another width, or one for each layer, which adds to the attention's values.
        if stack.role == "other" and len(stack.shape) == 2 and stack.shape[0] in rows and stack.shape[0] != width:
            stack.role = "token_embedding" if stack.single else "attention"
    heads = {stack.module for stack in stacks if stack.role == "head"}
    for stack in stacks:
        logits = stack.shape in {(count,) for count in rows - {width}} and not block_of(stack.template)
        if stack.leaf == "bias" and (
            (stack.role == "other" and logits) or (stack.role == "mlp" and stack.module in heads)
        ):
            stack.role = "head"


def _unnamed_table(outside: Sequence[Stack], width: int) -> list[Stack]:
    """Return the token embedding if no name shows it.

    It is the first of the tallest matrices that are as wide as the blocks.
    """
    tall = [one for one in outside if one.role == "other" and one.shape[0] > one.shape[1] == (width or one.shape[1])]
    most = max((one.shape[0] for one in tall), default=0)
    tables = [one for one in tall if one.shape[0] == most]
    if not width and len(tables) < 2:  # a single matrix may be anything
        return []
    named = [one for one in tables if _is_table(one.template)]
    first = (named or [one for one in tables if not _HEAD.search(one.template)])[:1]
    for table in first:
        table.role = "token_embedding"
    return first


def _is_table(template: str) -> bool:
    return bool(_EMBEDS.search(template)) and not re.search("unemb", template, re.IGNORECASE)


# -- inside of the blocks -------------------------------------------------------------------------


def _find_sublayers(stacks: Sequence[Stack], width: int) -> None:
    """Set the roles of unnamed attention and MLPs, by the shapes of a block's matrices."""
    matrices = [stack for stack in stacks if len(stack.shape) > 1]
    inside = Counter(place for stack in matrices for place in above(stack.module))
    groups: dict[str, list[Stack]] = {}
    named: dict[str, set[str]] = {}  # block -> roles already found by name
    for stack in matrices:
        block = block_of(stack.template)
        named.setdefault(block, set()).add({"experts": "mlp", "ssm": "attention"}.get(stack.role, stack.role))
        if block and len(stack.shape) == 2 and stack.role == "other" and width in stack.shape:
            module = ".".join(filter(None, (block, stack.module[len(block) + 1 :].partition(".")[0])))
            groups.setdefault(block if inside[module] < 2 else module, []).append(stack)
    for group in groups.values():
        _tell_apart(group, width, {"attention", "mlp"} - named[block_of(group[0].template)])


def _tell_apart(group: Sequence[Stack], width: int, missing: set[str]) -> None:
    """Separate MLP from attention by shape.

    An MLP widens and narrows again by the same size. Attention has projections without a matching
    way back.
    """
    ways = {stack.shape for stack in group}
    paired = [one for one in group if max(one.shape) > width and one.shape[::-1] in ways]
    if len(paired) < len(group):
        paired = [one for one in paired if max(one.shape) >= 2 * width]
    least = 2 * width if len(group) > 2 else width + 1
    fused = {2 * one.shape[1] for one in group if one.shape[0] == width and one.shape[1] >= least}  # fused gate and up
    if not paired:
        paired = [
            one for one in group if one.shape[0] in fused or (2 * one.shape[1] in fused and one.shape[0] == width)
        ]
    if not {one.shape[0] for one in paired} & fused:
        paired = [one for one in paired if one.shape[::-1] in ways]
    rest = [one for one in group if one not in paired]
    there, back = (any(one.shape[axis] == width for one in rest) for axis in (1, 0))
    attends = len(rest) > 1 and there and back and any(min(one.shape) == width for one in rest)
    for role, stacks in (("mlp", paired), ("attention", rest if attends else [])):
        for stack in stacks:
            stack.role = role if role in missing else stack.role


def _ask_neighbours(stacks: Sequence[Stack]) -> None:
    """Give a tensor without a role the role that all others in its module share."""
    around: dict[str, set[str]] = {}
    for stack in stacks:
        if stack.role in _SUBLAYERS and block_of(stack.template):
            for place in above(stack.module):
                around.setdefault(place, set()).add(stack.role)
    norms = {stack.module for stack in stacks if stack.role == "norm"}
    for stack in stacks:
        block = block_of(stack.template)
        if stack.role != "other" or not block:
            continue
        if stack.module in norms:
            stack.role = "norm"
            continue
        for place in above(stack.module):
            if len(place) <= len(block):
                break
            if roles := around.get(place, set()) - {"conv"} or around.get(place):
                stack.role = next(iter(roles)) if len(roles) == 1 else "other"
                break


def _alone(stack: Stack, matrices: int) -> str:
    """Return the role that a tensor's own shape implies, or "other".

    `matrices` is the number of other matrices in its module.
    """
    if _CELL.search(stack.template):
        return "mlp"
    if len(stack.shape) == 1 and _SCALES.search(stack.template) and stack.shape[0] > 1:
        return "other" if matrices else "norm"
    # A kernel over images, or a depthwise one over tokens; other tensors of three axes may be
    # anything.
    kernel = len(stack.shape) == 4 or (len(stack.shape) == 3 and stack.shape[1] == 1)
    if kernel and stack.leaf == "weight" and max(stack.shape[2:]) <= _WIDEST_KERNEL:
        return "conv"
    return "other"


def _find_shifts(stacks: Sequence[Stack]) -> None:
    """Give a norm's bias the role of its scale."""
    norms = {(stack.module, stack.shape) for stack in stacks if stack.role == "norm"}
    for stack in stacks:
        if stack.role == "other" and (stack.module, stack.shape) in norms:
            stack.role = "norm"
