"""What of a model one of many ranks holds: each tensor becomes the shard of the fullest rank.

A shard is an entry as any other, only smaller, so that everything that counts bytes counts those of a rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import NamedTuple

from tallystick.answers.formats import bytes_of
from tallystick.answers.lines import Line
from tallystick.errors import BadInput, shown
from tallystick.ledger import Axis, Entry, Ledger

# Projections whose results are summed over tensor parallel ranks, so that their biases stay whole; and waists that
# are too narrow to cut (Shoeybi et al. 2019, "Megatron-LM", section 3; DeepSeek-AI 2024, "DeepSeek-V2", section 2.1).
_SUMMED = ("o_proj", "out_proj", "c_proj", "dense", "down_proj", "fc2", "fc_out", "dense_4h_to_h", "output")
_WHOLE = ("q_a_proj", "kv_a_proj_with_mqa")
_VOCABULARY = ("token_embedding", "head")

DDP = "torch.nn.parallel.DistributedDataParallel: gradient_as_bucket_view is false by default"
FSDP = "torch.distributed.fsdp.fully_shard: reshard_after_forward, implicit prefetching"
WHAT = {"optimizer": 1, "gradients": 2, "weights": 3}  # the stage of ZeRO from which on ranks share it


class Shards(NamedTuple):
    """Over how many ranks a model is spread, in each way; they multiply."""

    dp: int = 1  # data parallel: each has its own sequences
    zero: int = 0  # what these share: 1 optimizer state, 2 gradients too, 3 weights too (FSDP)
    tp: int = 1  # tensor parallel: each holds a part of every matrix
    pp: int = 1  # pipeline parallel: each holds a part of the layers
    ep: int = 1  # expert parallel: each holds a part of the experts

    @property
    def ranks(self) -> int:
        """Ranks in all; those that experts are spread over are data parallel too."""
        return max(self.dp, self.ep) * self.tp * self.pp


def checked(shards: Shards, ledger: Ledger) -> Shards:
    """The same, if the model can be spread so; `BadInput` in one line if not."""
    for what, number in shards._asdict().items():
        least, most = (0, 3) if what == "zero" else (1, 1_000_000)
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise BadInput(
                f"{what} is {shown(number)}, expected {'0 to 3' if what == 'zero' else 'a positive integer'}"
            )
    if shards.zero and shards.dp == 1:
        raise BadInput(f"zero {shards.zero} shares among data parallel ranks: say how many with dp")
    described = ledger.described or ledger
    for one in described.attending if shards.tp > 1 else ():
        for what, heads in (("query heads", one.heads.queries), ("key and value heads", one.heads.keys)):
            if int(heads) % shards.tp:
                raise BadInput(
                    f"{ledger.source} has {int(heads):,} {what}, which {shards.tp} tensor parallel ranks do not divide"
                )
    layers = _layers(ledger.parameters)
    if shards.pp > 1 and layers % shards.pp:
        raise BadInput(f"{ledger.source} has {layers:,} layers, which {shards.pp} pipeline stages do not divide")
    experts = _experts(ledger.parameters)
    if shards.ep > 1 and (not experts or shards.ep > experts):
        raise BadInput(f"{ledger.source} has {experts or 'no'} experts, too few for {shards.ep} expert parallel ranks")
    if shards.ep > 1 and experts % shards.ep:
        raise BadInput(f"{ledger.source} has {experts} experts, which {shards.ep} expert parallel ranks do not divide")
    if shards.dp > 1 and shards.dp % shards.ep:
        raise BadInput(
            f"{shards.ep} expert parallel ranks are some of the data parallel ones: dp {shards.dp} must be a multiple of ep"
        )
    return shards


def shard(entries: Iterable[Entry], shards: Shards, what: str) -> list[Entry]:
    """What the fullest rank holds of the ``weights``, ``gradients`` or ``optimizer`` of each entry.

    That is the first of data parallel ranks, and of the pipeline the stage with the embedding, or that with the head,
    where it is the larger. Of what ranks share, `fully_shard` gives each the same number of rows, the last rows of all padding.
    """
    entries = [_tensor_parallel(entry, shards) for entry in _stage(list(entries), shards)]
    if shards.ep > 1:
        entries = [_expert_parallel(entry, shards.ep) for entry in entries]
    if shards.zero < WHAT[what]:
        return entries
    # Experts that ranks share already are shared further only among those that hold the same ones.
    return [_rows(entry, shards.dp // shards.ep if entry.role == "experts" else shards.dp) for entry in entries]


def per_rank(ledger: Ledger, shards: Shards) -> Ledger:
    """The ledger as one rank sees its layers: those of a stage, with its share of the heads that a cache keeps."""
    if shards.tp == shards.pp == 1:
        return ledger
    seen = copy(ledger)
    described = ledger.described or ledger
    size = _layers(ledger.parameters) // shards.pp
    stage = _most_attending(described, size)
    held = [(one, _within(Axis(one.start, one.layers), stage, size)) for one in described.attending]
    seen.attending = tuple(
        one._replace(
            start=layers.start,
            layers=layers.length,
            heads=one.heads._replace(keys=int(one.heads.keys) // shards.tp),
        )
        for one, layers in held
        if layers
    )
    # No rule says how tensor parallel ranks share a scan: each keeps all of its state.
    scans = [(one, _within(Axis(one.start, one.layers), stage, size)) for one in described.recurring]
    seen.recurring = tuple(
        one._replace(start=layers.start, layers=layers.length) for one, layers in scans if layers is not None
    )
    if ledger.described is not None:
        seen.described = copy(ledger.described)
        seen.described.attending, seen.described.recurring = seen.attending, seen.recurring
    return seen


def _most_attending(described: Ledger, size: int) -> int:
    """The first stage with the most layers that attend: its cache grows fastest.

    Stages cache alike where all layers attend, but for a pattern of windows, of which the first stands for all.
    """
    runs = [Axis(one.start, one.layers) for one in described.attending]
    stages = {0, *(stage for run in runs for stage in _stages_of(run, size))}

    def attending(stage: int) -> int:
        return sum(int(held.length) for run in runs if (held := _within(run, stage, size)))

    return max(sorted(stages), key=attending)


def _stages_of(run: Axis, size: int) -> set[int]:
    """The stages with the ends of a run of layers, and one that it fills, if there is one."""
    first, last = int(run.start) // size, int(run.start + run.length - 1) // size
    return {first, min(first + 1, last), last}


def gathered(entries: Iterable[Entry], form: str | None, shards: Shards) -> list[Line]:
    """What `fully_shard` puts together for a while: the root's unit, and two layers, one at work and one on its way.

    And what DistributedDataParallel keeps beside the gradients: buckets as large as they are.
    """
    if shards.dp == 1:
        return []
    whole = [entry for entry in shard(entries, shards._replace(zero=0), "weights") if entry.unique]
    if shards.zero < WHAT["weights"]:
        if shards.zero:
            return []
        total = sum(bytes_of(entry, form) for entry in whole if entry.trainable)
        return [
            Line("gradients", "buckets that DistributedDataParallel sends", total, "as large as the gradients", DDP)
        ]
    root = sum(bytes_of(entry, form) for entry in whole if not entry.axes)
    layers: dict[tuple[str, int], int] = {}  # by where a run of equal layers begins
    for entry in whole:
        if entry.axes:
            run = entry.name.partition("{}")[0], int(entry.axes[0].start)
            layers[run] = layers.get(run, 0) + bytes_of(entry, form) // int(entry.axes[0].length)
    layer, count = max(layers.values(), default=0), min(2, _layers(whole))
    formula = f"{root:,} B of the root's unit + {count} layers × {layer:,} B"
    return [Line("activations", "weights gathered for the layers at work", root + count * layer, formula, FSDP)]


def rank_notes(ledger: Ledger, shards: Shards, *, training: bool) -> list[str]:
    """What to know of a model that is spread."""
    if shards == Shards():
        return []
    notes = [f"of one rank of {shards.ranks:,}, the fullest; batch is that of each data parallel rank"]
    if shards.tp > 1:
        notes.append("activations and logits are counted as if tensor parallel ranks kept all: at most")
    if shards.pp > 1 and training:
        notes.append(
            f"activations are those of all layers: a first stage keeps its layers' for up to {shards.pp} micro-batches at once"
        )
    ties = [tie for tie in ledger.ties if tie.relation == "tied"]
    for tie in ties:
        pair = " = ".join(tie.names)
        if shards.pp > 1:
            notes.append(f"{pair}: the first and the last stage hold it each, and must add their gradients")
        if shards.zero == WHAT["weights"]:
            notes.append(f"{pair}: keep both names in one unit of fully_shard, or they come apart")
        if shards.tp > 1:
            notes.append(f"{pair}: cut by the rows of the vocabulary, so that both uses have one shard")
    return notes


def _rows(entry: Entry, ranks: int) -> Entry:
    """One of so many equal parts of the first dimension, the last of which padding fills up."""
    if ranks == 1 or not entry.unique or not entry.shape:
        return entry
    first, *rest = entry.shape
    return _cut(entry, (-(-int(first) // ranks), *rest))


def _cut(entry: Entry, shape: tuple[int, ...]) -> Entry:
    smaller = entry._replace(shape=shape)
    return smaller._replace(unique=smaller.size)


# -- tensor parallel ------------------------------------------------------------------------------


def _tensor_parallel(entry: Entry, shards: Shards) -> Entry:
    if shards.tp == 1 or not entry.unique:
        return entry
    module = entry.name.rpartition(".")[0].rpartition(".")[2]
    if entry.role in _VOCABULARY:  # the rows of the vocabulary, and with a tie the same ones for both uses
        return _rows(entry, shards.tp)
    if entry.role not in ("attention", "mlp", "experts") or module in _WHOLE or "norm" in module:
        return entry
    if len(entry.shape) < 2 and module in _SUMMED:  # the bias of a sum over ranks is added once
        return entry
    # By rows or by columns is one to the size; what divides leaves no padding.
    places = range(max(len(entry.shape) - 2, 0), len(entry.shape))
    place = next((place for place in places if int(entry.shape[place]) % shards.tp == 0), places[0])
    shape = list(entry.shape)
    shape[place] = -(-int(shape[place]) // shards.tp)
    return _cut(entry, tuple(shape))


# -- expert parallel ------------------------------------------------------------------------------


def _expert_parallel(entry: Entry, ranks: int) -> Entry:
    if entry.role != "experts" or not entry.unique:
        return entry
    if len(entry.axes) > 1:  # experts held one by one
        layers, experts = entry.axes[0], entry.axes[-1]
        return entry._replace(axes=(layers, *entry.axes[1:-1], Axis(experts.start, -(-int(experts.length) // ranks))))
    return _rows(entry, ranks)


def _experts(entries: Iterable[Entry]) -> int:
    """How many routed experts a layer has."""
    counts = [
        int(entry.axes[-1].length) if len(entry.axes) > 1 else int(entry.shape[0])
        for entry in entries
        if entry.role == "experts"
    ]
    return max(counts, default=0)


# -- pipeline parallel ----------------------------------------------------------------------------


def _stage(entries: list[Entry], shards: Shards) -> list[Entry]:
    """The fullest stage: its layers, and what stands before the layers, or after them.

    A tied matrix is on both ends: the first stage looks tokens up in it, the last multiplies by it, and their gradients
    must be added across the two.
    """
    if shards.pp == 1:
        return entries
    layers = [entry for entry in entries if entry.axes]
    ends = [entry for entry in entries if not entry.axes]
    first = [entry for entry in ends if entry.role in ("token_embedding", "position_embedding")]
    tied = {entry.storage for entry in ends if not entry.unique}
    last = [entry for entry in ends if entry not in first or entry.name in tied]
    size = _layers(layers) // shards.pp
    # Between its ends, a stage differs from the one before it only where another run of layers begins.
    stages = {0, shards.pp - 1}
    stages |= {int(entry.axes[0].start + more) // size for entry in layers for more in (0, entry.axes[0].length - 1)}

    def held(stage: int) -> list[Entry]:
        own = [(entry, _within(entry.axes[0], stage, size)) for entry in layers]
        between = [entry._replace(axes=(numbers, *entry.axes[1:])) for entry, numbers in own if numbers]
        return [*(first if stage == 0 else ()), *between, *(last if stage == shards.pp - 1 else ())]

    return max(map(held, sorted(stages)), key=lambda stage: sum(entry.unique * entry.copies for entry in stage))


def _within(numbers: Axis, stage: int, size: int) -> Axis | None:
    """Those of the numbered layers that a stage of so many holds."""
    start = max(int(numbers.start), stage * size)
    stop = min(int(numbers.start + numbers.length), (stage + 1) * size)
    return Axis(start, stop - start) if start < stop else None


def _layers(entries: Iterable[Entry]) -> int:
    """How many layers the longest stack has."""
    ends: dict[str, int] = {}
    for entry in entries:
        if entry.axes:
            stack = entry.name.partition("{}")[0]
            ends[stack] = max(ends.get(stack, 0), int(entry.axes[0].start + entry.axes[0].length))
    return max(ends.values(), default=0)
