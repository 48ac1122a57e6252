"""Group a model's tensors as it runs: embeddings, each kind of block with its sublayers, the head.

No architecture is known here. Names give the modules, number ranges the layers, and what the config
describes the heads and windows. Stacks stay rolled up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias

from tallystick.core.anatomy import Heads, Recurrence, Routing, Windows
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of

MOST_LAYERS = 4096  # layers looked at one by one, for their windows

_TENSOR = ("weight", "bias")  # last words of a name that add nothing to the module's
_WRAPPER = re.compile(r"layers?|\{\}|\d+")  # modules that only number others
_EMBEDS = ("token_embedding", "position_embedding")
_MIXES = ("attention", "ssm", "conv")
_FEEDS = ("mlp", "experts", "router")
_JOINED = ("attention", "mlp", "head", "other")
_LAST = re.compile(r"(^|\.)(norm|ln_f|norm_f|post_layernorm|final\w*|\w+_final|out\w*norm)$")  # a stack's last norm


class Piece(NamedTuple):
    """One module of a sublayer with its bias: q_proj, all experts' up_proj."""

    name: str
    role: str
    parameters: int  # unique ones, in one layer
    tensors: tuple[str, ...]  # their names, with * for numbers
    shape: tuple[int, ...]  # of its largest tensor
    shares: str  # the tensor whose storage all of it is; "" if it has its own
    experts: int  # how many it is of; 0 if none
    used: int | None  # how many experts one token is routed to; None if only a config could say


class Part(NamedTuple):
    """What runs as one step: an embedding, a norm, an attention, an MLP, all experts."""

    name: str  # its module: self_attn
    role: str
    pieces: tuple[Piece, ...]
    heads: Heads | None = None
    window: int | None = None  # positions that it attends to; None is all
    keeps: Recurrence | None = None

    @property
    def parameters(self) -> int:
        """Unique parameters of one layer."""
        return sum(piece.parameters for piece in self.pieces)


class Kind(NamedTuple):
    """Equal blocks of a stack."""

    layers: int
    steps: tuple[tuple[Part, ...], ...]  # each reads the residual stream, and adds its output to it

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, in the order in which they run."""
        return tuple(part for step in self.steps for part in step)

    @property
    def parameters(self) -> int:
        """Unique parameters of one block."""
        return sum(part.parameters for part in self.parts)


class Stack(NamedTuple):
    """Numbered blocks, of one kind or several."""

    name: str  # model.layers
    kinds: tuple[Kind, ...]  # in order of their first layer
    runs: tuple[tuple[int, int], ...]  # layers in a row, and which kind they are

    @property
    def layers(self) -> int:
        """Number of blocks."""
        return sum(kind.layers for kind in self.kinds)

    @property
    def parameters(self) -> int:
        """Unique parameters of all blocks."""
        return sum(kind.layers * kind.parameters for kind in self.kinds)


class _Tensor(NamedTuple):
    """An entry below its block: its name there, and how often it occurs in one block."""

    path: tuple[str, ...]
    entry: Entry
    copies: int

    @property
    def alike(self) -> tuple[object, ...]:
        """What is the same in equal blocks."""
        return self.path, tuple(self.entry.shape), self.entry.role, self.entry.unique, self.copies


_Range: TypeAlias = tuple[int, int]
_Steps: TypeAlias = tuple[tuple[Part, ...], ...]


def blocks(ledger: Ledger) -> tuple[Part | Stack, ...]:
    """Return a model's parts and stacks in the order in which a token goes through them.

    Args:
        ledger: the model.
    """
    alone: list[_Tensor] = []
    stacks: dict[str, dict[_Range, list[_Tensor]]] = {}
    places: dict[str, int] = {}  # of each stack in printing order: how many tensors stand alone before it
    for entry in ledger.parameters:
        if entry.size:
            root = _place(entry, alone, stacks)
            places.setdefault(root, len(alone))
    found: list[tuple[float, Part | Stack]] = [
        (places[root], _stack(ledger, root, ranges)) for root, ranges in stacks.items()
    ]
    order = {id(tensor): place for place, tensor in enumerate(alone)}
    for part, group in _parts(ledger, "", alone):
        found.append((_where(part, order[id(group[0])], places), part))
    return tuple(_joined(one for _, one in sorted(found, key=lambda item: item[0])))


def _place(entry: Entry, alone: list[_Tensor], stacks: dict[str, dict[_Range, list[_Tensor]]]) -> str:
    """Put an entry into its stack, by its layers, or among what stands alone; return the stack."""
    if entry.axes:
        template, axes = entry.name, entry.axes
    else:
        template, numbers = template_of(entry.name)
        axes = tuple(Axis(int(number), 1) for number in numbers)
    root, numbered, rest = template.partition(".{}.")
    if not numbered or entry.role == "head":
        alone.append(_Tensor(tuple(template.split(".")), entry, entry.copies))
        return ""
    start, length = int(axes[0].start), int(axes[0].length)
    copies = entry.copies // length if entry.axes else 1
    ranges = stacks.setdefault(root, {})
    ranges.setdefault((start, start + length), []).append(_Tensor(tuple(rest.split(".")), entry, copies))
    return root


def _where(part: Part, place: int, stacks: Mapping[str, int]) -> float:
    """Return where a part runs among the others: the last norm of a stack may be printed first."""
    if part.role == "head":
        return float("inf")
    if part.role == "norm" and _LAST.search(part.name):
        owner = part.name.rpartition(".")[0]
        after = [at for root, at in stacks.items() if root and root.rpartition(".")[0] == owner]
        return max([place - 0.5, *(at + 0.5 for at in after)])
    return place - 0.5


def _joined(found: Iterable[Part | Stack]) -> Iterator[Part | Stack]:
    """Join parts in a row that are one step in several modules: fc1 and fc2."""
    waiting: Part | None = None
    for one in found:
        if waiting is not None and isinstance(one, Part) and one.role == waiting.role and one.role in _JOINED:
            heads = waiting.heads or one.heads
            name = f"{waiting.name}, {one.name}"
            waiting = waiting._replace(name=name, pieces=(*waiting.pieces, *one.pieces), heads=heads)
            continue
        if waiting is not None:
            yield waiting
        waiting = None
        if isinstance(one, Part):
            waiting = one
        else:
            yield one
    if waiting is not None:
        yield waiting


# -- a stack --------------------------------------------------------------------------------------


def _stack(ledger: Ledger, root: str, ranges: dict[_Range, list[_Tensor]]) -> Stack:
    runs: list[tuple[int, object]] = []  # layers in a row, and what tells their kind
    found: dict[object, _Steps] = {}
    for start, end, tensors in _segments(ranges):
        alike = tuple(tensor.alike for tensor in tensors)
        for length, described in _described(ledger, root, start, end):
            key = alike, described
            if key not in found:
                found[key] = _steps(ledger, root, tensors, dict(described))
            runs.append((length, key))
    numbers = {key: place for place, key in enumerate(found)}
    kinds = tuple(Kind(sum(length for length, one in runs if one == key), steps) for key, steps in found.items())
    merged = [
        (sum(length for length, _ in group), number)
        for number, group in ((n, list(g)) for n, g in groupby(runs, key=lambda run: numbers[run[1]]))
    ]
    return Stack(root, kinds, tuple(merged))


def _steps(
    ledger: Ledger, root: str, tensors: Sequence[_Tensor], described: dict[str, tuple[Heads, int | None]]
) -> _Steps:
    """Return a block's parts by step; those that run in parallel are one step."""
    keeps = {one.name.removeprefix(f"{root}.{{}}").strip("."): one.keeps for one in ledger.recurring}
    parts = [part for part, _ in _parts(ledger, f"{root}.{{}}.", tensors, described)]
    parts = [part._replace(keeps=keeps.get(part.name)) if part.role == "ssm" else part for part in parts]
    if not any(part.role == "experts" for part in parts):  # an MLP is then a step of its own: shared experts
        parts = [part for part in _joined(parts) if isinstance(part, Part)]
    steps = _in_running_order(parts)
    parallel = any(part.shares_input and part.name.startswith(f"{root}.") for part in ledger.model.parts)
    return (tuple(part for step in steps for part in step),) if parallel else steps


def _segments(ranges: dict[_Range, list[_Tensor]]) -> Iterator[tuple[int, int, list[_Tensor]]]:
    """Yield each run of layers with the same tensors: first layer, end, tensors."""
    edges = sorted({edge for pair in ranges for edge in pair})
    wide = [pair for pair in ranges if pair[1] - pair[0] > 1]
    for start, end in pairwise(edges):
        around = [pair for pair in wide if pair[0] <= start and end <= pair[1]]
        if (start, end) in ranges and (start, end) not in around:
            around.append((start, end))
        if tensors := [tensor for pair in around for tensor in _merged(ranges[pair])]:
            yield start, end, tensors


def _merged(tensors: Sequence[_Tensor]) -> list[_Tensor]:
    """Return single experts of a layer, each named with its number, as one with copies."""
    found: dict[tuple[object, ...], _Tensor] = {}
    for tensor in tensors:
        known = found.get(tensor.alike[:4])
        found[tensor.alike[:4]] = tensor if known is None else known._replace(copies=known.copies + tensor.copies)
    return list(found.values())


_Described: TypeAlias = tuple[tuple[str, tuple[Heads, int | None]], ...]


def _described(ledger: Ledger, root: str, start: int, end: int) -> Iterator[tuple[int, _Described]]:
    """Yield runs of layers with the same heads and windows, by the attention's module."""
    inside = [
        one
        for one in ledger.attending
        if one.name.startswith(f"{root}.{{}}") and one.start < end and start < one.start + one.layers
    ]

    def of(layer: int) -> _Described:
        return tuple(
            (one.name.removeprefix(f"{root}.{{}}").strip("."), (one.heads._replace(windows=()), _window(one.heads.windows, layer)))
            for one in inside
            if one.start <= layer < one.start + one.layers
        )  # fmt: skip

    edges = {int(edge) for one in inside for edge in (one.start, one.start + one.layers)}
    patterned = any(len(one.heads.windows) > 1 for one in inside) and end - start <= MOST_LAYERS
    cuts = range(start, end + 1) if patterned else sorted({start, end, *(e for e in edges if start < e < end)})
    runs = ((last - first, of(first)) for first, last in pairwise(cuts))
    for described, group in groupby(runs, key=lambda run: run[1]):
        yield sum(length for length, _ in group), described


def _window(windows: Windows, layer: int) -> int | None:
    """Return the window of one layer.

    >>> [_window(((512, 2), (None, 1)), layer) for layer in range(4)]
    [512, 512, None, 512]
    """
    place = layer % sum(int(run) for _, run in windows)
    for window, run in windows:
        if place < run:
            return None if window is None else int(window)
        place -= int(run)
    return None


# -- the parts of one block -----------------------------------------------------------------------


def _parts(
    ledger: Ledger, prefix: str, tensors: Iterable[_Tensor], described: dict[str, tuple[Heads, int | None]] | None = None
) -> Iterator[tuple[Part, list[_Tensor]]]:  # fmt: skip
    """Yield the parts in printing order, with their tensors."""
    tensors = list(tensors)
    routed = {_module(one)[0] for one in tensors if one.entry.role == "experts"}
    groups: dict[tuple[str, ...], list[_Tensor]] = {}
    for one in tensors:
        module = _module(one)
        if not prefix:  # outside of blocks, each module that holds a tensor is a part
            key = (one.entry.role, *(module if one.entry.role != "other" else ()))
        else:
            key = module[:2] if module[0] in routed and one.entry.role in _FEEDS else module[:1]
        groups.setdefault(key, []).append(one)
    for key, group in groups.items():
        name = ".".join(key if prefix else key[1:]) or (group[0].path[0] if not prefix else "")
        role = max(_roles(group).items(), key=lambda item: item[1])[0]
        pieces = tuple(_pieces(ledger, prefix, group))
        heads, window = _heads(name, group, described or {}) if role == "attention" else (None, None)
        yield Part(name, role, pieces, heads, window), group


def _heads(
    name: str, group: Sequence[_Tensor], described: dict[str, tuple[Heads, int | None]]
) -> tuple[Heads | None, int | None]:
    """Return the heads of the attention that a part is, holds or is inside of."""
    paths = [".".join(one.path) for one in group]
    for module, found in described.items():
        if any(path.startswith(f"{module}.") for path in paths) or module == name or not module:
            return found
    return None, None


def _roles(group: Iterable[_Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for one in group:
        sizes[one.entry.role] = sizes.get(one.entry.role, 0) + int(one.entry.size) * one.copies
    return sizes


def _module(tensor: _Tensor) -> tuple[str, ...]:
    """Return the modules around a tensor, without those that only number others."""
    path = tensor.path[:-1] if tensor.path[-1] in _TENSOR else tensor.path
    return tuple(word for word in path if not _WRAPPER.fullmatch(word)) or ("",)


def _pieces(ledger: Ledger, prefix: str, group: Sequence[_Tensor]) -> Iterator[Piece]:
    named: dict[tuple[str, ...], list[_Tensor]] = {}
    for one in group:
        named.setdefault(_module(one), []).append(one)
    for path, inside in named.items():
        largest = max(inside, key=lambda one: int(one.entry.size)).entry
        unique = sum(int(one.entry.unique) * one.copies for one in inside)
        experts, used = _experts(ledger, inside) if largest.role == "experts" else (0, None)
        yield Piece(
            name=path[-1] or prefix.split(".", maxsplit=1)[0],
            role=largest.role,
            parameters=unique,
            tensors=tuple(f"{prefix}{'.'.join(one.path)}".replace("{}", "*") for one in inside),
            shape=tuple(int(size) for size in largest.shape),
            shares="" if unique else largest.storage.replace("{}", "*"),
            experts=experts,
            used=used,
        )


def _experts(ledger: Ledger, inside: Sequence[_Tensor]) -> tuple[int, int | None]:
    """Return the number of experts, and how many of them one token uses."""
    largest = max(inside, key=lambda one: int(one.entry.size))
    entry = largest.entry
    stated = [int(part.what.experts) for part in ledger.model.parts if isinstance(part.what, Routing)]
    of = largest.copies if largest.copies > 1 else stated[0] if stated else int(entry.shape[0])
    share: Fraction | None = entry.active
    used = None if share is None else of * share
    return of, int(used) if used is not None and used.denominator == 1 else None


def _in_running_order(parts: Sequence[Part]) -> _Steps:
    """Return a block's steps, with the norms where they run, wherever they are printed."""
    norms = [part for part in parts if part.role == "norm"]
    mixers = [part for part in parts if part.role in _MIXES]
    feeds = [part for part in parts if part.role in _FEEDS]
    others = [part for part in parts if part not in (*norms, *mixers, *feeds)]
    feeds = sorted(feeds, key=lambda part: part.role != "router")
    steps = [[part] for part in mixers] + ([feeds] if feeds else [])
    if not steps:
        return (tuple(parts),)
    each, rest = divmod(len(norms), len(steps))
    if rest or each > 2:  # not the same number around each step
        steps[0][:0] = norms
        each = 0
    after = all(_follows(part.name) for part in norms)
    for place, step in enumerate(steps):
        own = norms[place * each : (place + 1) * each]
        before = own[:1] if each == 2 else [] if after else own
        step[:] = [*before, *step, *(part for part in own if part not in before)]
    steps[-1] += others
    return tuple(map(tuple, steps))


def _follows(name: str) -> bool:
    """Return whether a norm's name says that it normalises an output."""
    return bool(re.search(r"post_\w*(attention|feedforward|mlp|ff)\w*norm|output", name))
