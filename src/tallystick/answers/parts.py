"""Classify each tensor further: bias, norm scale or shift, block, idle or shared.

The answers use these tags to find what people leave out of a count: biases, positions, norms.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple, TypeAlias

from tallystick.core import mtp
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of

# A tensor's role, its kind in its module (`kind_of`), and those of these words that apply:
# block (in a numbered block), last (in the last one), idle (experts that one token skips), shared
# (an expert that every token uses), mtp (multi-token prediction), tower (vision or audio), frozen.
Tags: TypeAlias = frozenset[str]

_BIAS = re.compile(r"(\w*_)?bias|b(_\w+)?")
_SHIFT = re.compile(r"(\w*_)?bias|b|shift|beta")
_SHARED = re.compile(r"(^|\.)shared_experts?(\.|$)")
_TOWER = re.compile(r"(^|\.)(visual|vision\w*|image_\w+|audio\w*)\.")


class Part(NamedTuple):
    """A part of a model that people count, forget or leave out as a whole."""

    name: str
    words: str
    parameters: int  # unique parameters
    names: tuple[str, ...]  # of its tensors, with * for layer numbers


_PARTS = (
    ("token_embedding", "the token embedding", {"token_embedding"}),
    ("positions", "the learned position embeddings", {"position_embedding"}),
    ("head", "the head", {"head"}),
    ("biases", "the biases", {"bias"}),
    ("norm_scales", "the norm scales", {"scale"}),
    ("norm_shifts", "the norm shifts", {"shift"}),
    ("norms", "the norms", {"norm"}),
)


def kind_of(entry: Entry) -> str:
    """Return a tensor's kind: ``matrix``, ``bias``, norm ``scale``, norm ``shift``, or ``vector``.

    A bias is recognised by its name, because experts store their biases as a matrix. A norm's shift
    is not a bias here.
    """
    last = entry.name.rpartition(".")[2]
    if entry.role == "norm":
        return "shift" if _SHIFT.fullmatch(last) else "scale"
    if _BIAS.fullmatch(last):
        return "bias"
    return "matrix" if len(entry.shape) > 1 else "vector"


def parts(ledger: Ledger) -> tuple[Part, ...]:
    """Return the non-empty parts. They overlap: norms are their scales and shifts."""
    found = []
    for name, words, tags in _PARTS:
        entries = [entry for entry in ledger.parameters if tags & {entry.role, kind_of(entry)}]
        names = dict.fromkeys(_template(entry.name).replace("{}", "*") for entry in entries if entry.unique)
        if names:
            found.append(Part(name, words, sum(entry.unique * entry.copies for entry in entries), tuple(names)))
    return tuple(found)


def cells(ledger: Ledger) -> dict[Tags, int]:
    """Return the unique parameters of each cell: the tensors with the same `Tags`."""
    entries = [(entry, *_blocks(entry)) for entry in ledger.parameters if entry.unique]
    further = {stack: blocks.start for entry, stack, blocks in reversed(entries) if mtp.JOINS in entry.name}
    last = _last(entries, further)
    counts: Counter[Tags] = Counter()
    for entry, stack, blocks in entries:
        tags = {entry.role, kind_of(entry)}
        tags |= {"block"} if stack else set()
        tags |= {"shared"} if _SHARED.search(entry.name) else set()
        tags |= {"tower"} if _TOWER.search(entry.name) else set()
        tags |= {"mtp"} if mtp.NAMED.search(entry.name) else set()
        tags |= set() if entry.trainable else {"frozen"}
        length = blocks.stop - blocks.start  # len() overflows for the ranges that a config can ask for
        parameters = int(entry.unique) * entry.copies // length  # in one block
        idle = int(parameters * (1 - entry.active)) if entry.active is not None else 0
        in_further = blocks.stop - min(max(blocks.start, further.get(stack, blocks.stop)), blocks.stop)
        in_last = int(last is not None and stack == last[0] and last[1] in blocks)
        for where, number in (("mtp", in_further), ("last", in_last), ("", length - in_further - in_last)):
            placed = frozenset(tags | {where} if where else tags)
            counts[placed] += number * (parameters - idle)
            counts[placed | {"idle"}] += number * idle
    return {tags: count for tags, count in counts.items() if count}


def _blocks(entry: Entry) -> tuple[str, range]:
    """Return an entry's stack and its block numbers; "" and one number outside of stacks."""
    stack, numbered, _ = _template(entry.name).partition("{}")
    if not numbered or entry.role == "head":  # a head made of several modules is not a block
        return "", range(1)
    if entry.axes:
        return stack, range(int(entry.axes[0].start), int(entry.axes[0].start + entry.axes[0].length))
    number = int(template_of(entry.name)[1][0])
    return stack, range(number, number + 1)


def _last(entries: list[tuple[Entry, str, range]], further: dict[str, int]) -> tuple[str, int] | None:
    """Return the last block of the largest stack, without blocks for multi-token prediction."""
    sizes: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    for entry, stack, blocks in entries:
        if stack:
            sizes[stack] += int(entry.unique) * entry.copies
            numbers[stack] = max(min(blocks.stop, further.get(stack, blocks.stop)) - 1, numbers.get(stack, 0))
    largest = max(sizes, key=sizes.__getitem__, default=None)
    return None if largest is None else (largest, numbers[largest])


def _template(name: str) -> str:
    return name if "{}" in name else template_of(name)[0]
