"""What of a model one of many ranks holds: each tensor becomes the shard of a rank.

A shard is an entry as any other, only smaller, so that everything that counts bytes counts those of a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tallystick.answers.memory.pipeline import layers_of, stacked, within
from tallystick.core.anatomy import AttentionRun, FeedForward, Heads, Norm, Routing, RunningPart
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Entry, Ledger
from tallystick.errors import BadInput, shown

# Projections whose results are summed over tensor parallel ranks: cut by what they read, their biases whole; and waists
# that are too narrow to cut (Shoeybi et al. 2019, "Megatron-LM", section 3; DeepSeek-AI 2024, "DeepSeek-V2", section 2.1).
_SUMMED = ("o_proj", "out_proj", "c_proj", "dense", "down_proj", "fc2", "fc_out", "dense_4h_to_h", "output")
_WHOLE = ("q_a_proj", "kv_a_proj_with_mqa")
_VOCABULARY = ("token_embedding", "head")

# The stage of ZeRO from which on ranks share it (Rajbhandari et al. 2020, "ZeRO", section 5).
WHAT = {"optimizer": 1, "gradients": 2, "weights": 3}


class Shards(NamedTuple):
    """Over how many ranks a model is spread, in each way; they multiply."""

    dp: int = 1  # data parallel: each has its own sequences
    zero: int = 0  # what these share: 1 optimizer state, 2 gradients too, 3 weights too (FSDP)
    tp: int = 1  # tensor parallel: each holds a part of every matrix
    pp: int = 1  # pipeline parallel: each holds a part of the layers
    ep: int = 1  # expert parallel: each holds a part of the experts

    @property
    def data(self) -> int:
        """Data parallel ranks: those that experts are spread over are some of them."""
        return max(self.dp, self.ep)

    @property
    def ranks(self) -> int:
        """Ranks in all."""
        return self.data * self.tp * self.pp


def checked(shards: Shards, ledger: Ledger) -> Shards:
    """The same, if the model can be spread so; `BadInput` in one line if not."""
    for what, number in shards._asdict().items():
        least, most = (0, 3) if what == "zero" else (1, 1_000_000)
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise BadInput(
                f"{what} is {shown(number)}, expected {'0 to 3' if what == 'zero' else 'a positive integer'}",
                code="bad-value",
            )
    if shards.zero and shards.data == 1:
        raise BadInput(
            f"zero {shards.zero} shares among data parallel ranks: say how many with dp", code="conflicting-options"
        )
    for one in ledger.model.attending if shards.tp > 1 else ():
        for what, heads in (("query heads", one.heads.queries), ("key and value heads", one.heads.keys)):
            if int(heads) % shards.tp:
                raise BadInput(
                    f"{ledger.source} has {int(heads):,} {what}, which {shards.tp} tensor parallel ranks do not divide",
                    code="indivisible",
                )
    entries = [stacked(entry) for entry in ledger.parameters]
    layers = layers_of(entries)
    if shards.pp > 1 and (not layers or layers % shards.pp):
        raise BadInput(
            f"{ledger.source} has {layers:,} layers, which {shards.pp} pipeline stages do not divide",
            code="indivisible",
        )
    experts = _experts(entries)
    if shards.ep > 1 and (not experts or shards.ep > experts):
        raise BadInput(
            f"{ledger.source} has {experts or 'no'} experts, too few for {shards.ep} expert parallel ranks",
            code="indivisible",
        )
    if shards.ep > 1 and experts % shards.ep:
        raise BadInput(
            f"{ledger.source} has {experts} experts, which {shards.ep} expert parallel ranks do not divide",
            code="indivisible",
        )
    if shards.dp > 1 and shards.dp % shards.ep:
        raise BadInput(
            f"{shards.ep} expert parallel ranks are some of the data parallel ones: dp {shards.dp} must be a multiple of ep",
            code="indivisible",
        )
    return shards


def shard(entries: Iterable[Entry], shards: Shards, what: str, rank: int = 0) -> list[Entry]:
    """What a data parallel rank holds of the ``weights``, ``gradients`` or ``optimizer`` of what `divided` gave.

    Stages 1 and 2 of ZeRO share elements (Rajbhandari et al. 2020, "ZeRO", section 5); stage 3 is here `fully_shard`.

    It gives each rank the same number of rows of every tensor; where they do not come out even, the memory
    of weights and gradients is padded to that, and the optimizer has no state of the padding: so the first is the fullest.
    """
    if shards.zero < WHAT[what]:
        return list(entries)
    if shards.zero < WHAT["weights"]:  # laid end to end, and cut into equal parts
        return [_part(entry, sharing(entry, shards)) for entry in entries]
    return [_rows(entry, sharing(entry, shards), rank if what == "optimizer" else 0) for entry in entries]


def sharing(entry: Entry, shards: Shards) -> int:
    """How many data parallel ranks have the same entry: of an expert those alone that hold it."""
    return shards.data // shards.ep if entry.role == "experts" else shards.data


def divided(ledger: Ledger, shards: Shards) -> Ledger:
    """A model as one of its tensor and expert parallel ranks has it: its shard of each matrix, heads and experts.

    Layers are `stacked`.
    """
    if shards == Shards():
        return ledger
    entries = [_tensor_parallel(stacked(entry), shards.tp) for entry in ledger.rolled]
    if shards.ep > 1:
        entries = list(_expert_parallel(entries, shards.ep))
    model = replace(
        ledger.model,
        attending=tuple(one._replace(heads=_fewer(one.heads, shards.tp)) for one in ledger.model.attending),
        parts=tuple(_thinner(part, shards.tp) for part in ledger.model.parts),
    )
    described = ledger.evidence.described
    return Ledger(
        tuple(entries),
        source=ledger.source,
        kind=ledger.kind,
        model=model,
        evidence=Evidence(described and divided(described, shards)),
    )


def rank_notes(ledger: Ledger, shards: Shards, *, training: bool) -> list[str]:
    """What to know of a model that is spread."""
    if shards == Shards():
        return []
    notes = [f"of one rank of {shards.ranks:,}, the fullest; batch is that of each data parallel rank"]
    if shards.tp > 1 and training:
        notes.append(
            "each tensor parallel rank gathers all logits, as transformers' plans have it; a loss that is parallel keeps"
            f" 1/{shards.tp:,} of them (Shoeybi et al. 2019, Megatron-LM, section 3)"
        )
    if shards.tp > 1 and any(one.heads.latent is not None for one in ledger.model.attending):
        notes.append("heads of latent attention are cut as any, which transformers' plans leave whole")
    if shards.tp > 1 and ledger.model.recurring:
        notes.append("scans are whole on each tensor parallel rank, weights and states: transformers' plans cut none")
    if shards.pp > 1 and training:
        notes.append(
            "batch is a micro-batch, and a stage keeps activations of as many as wait in it: the first of"
            f" {shards.pp:,}, the last of one (Narayanan et al. 2021, section 2.2)"
        )
    if shards.ep > 1 and training:
        notes.append("experts are counted as if tokens were spread evenly over them")
    if shards.zero in (1, 2):
        notes.append("not counted: the buffers in which gradients are sent, which are the framework's to size")
    for tie in ledger.ties:
        if tie.relation != "tied":
            continue
        pair = " = ".join(tie.names)
        if shards.pp > 1:
            notes.append(f"{pair}: the first and the last stage hold it each, and must add their gradients")
        if shards.zero == WHAT["weights"]:
            notes.append(f"{pair}: keep both names in one unit of fully_shard, or they come apart")
        if shards.tp > 1:
            notes.append(
                f"{pair}: one shard, rows of the vocabulary, serves both uses; torch's parallelize_module makes it two,"
                " so tie them again"
            )
    return notes


def _rows(entry: Entry, ranks: int, rank: int) -> Entry:
    """The rows of one of so many ranks; those of the first are as many as the last has with its padding."""
    if ranks == 1 or not entry.unique or not entry.shape:
        return entry
    first, *rest = entry.shape
    each = -(-int(first) // ranks)
    return _cut(entry, (max(min(int(first) - rank * each, each), 0), *rest))


def _part(entry: Entry, ranks: int) -> Entry:
    """One of so many equal parts of the elements, as a tensor of as many dimensions."""
    if ranks == 1 or not entry.unique or not entry.shape:
        return entry
    return _over(entry, entry.shape.index(max(entry.shape)), ranks)


def _cut(entry: Entry, shape: tuple[int, ...]) -> Entry:
    smaller = entry._replace(shape=shape)
    packed = None if entry.packed is None else -(-entry.packed * smaller.size // max(entry.size, 1))
    return smaller._replace(unique=smaller.size if entry.unique else 0, packed=packed)


# -- tensor parallel ------------------------------------------------------------------------------


def _tensor_parallel(entry: Entry, ranks: int) -> Entry:
    if ranks == 1:
        return entry
    if entry.role in _VOCABULARY:  # the rows of the vocabulary, and with a tie the same ones for both uses
        return _over(entry, 0, ranks)
    *_, module, word = ("", *entry.called.split("."))
    name = module if word in ("weight", "bias") else word.removesuffix("_bias")
    if entry.role not in ("attention", "mlp", "experts") or name in _WHOLE or "norm" in name:
        return entry
    last = len(entry.shape) - 1
    if last < 1 or word.endswith("bias"):
        return entry if name in _SUMMED else _over(entry, last, ranks)
    place, other = (last, last - 1) if name in _SUMMED else (last - 1, last)
    # Where the matrix is transposed the other one is meant; to the size it is one, but for padding.
    return _over(entry, other if int(entry.shape[place]) % ranks else place, ranks)


def _over(entry: Entry, place: int, ranks: int) -> Entry:
    shape = list(entry.shape)
    if not shape:
        return entry
    shape[place] = -(-int(shape[place]) // ranks)
    return _cut(entry, tuple(shape))


def _fewer(heads: Heads, ranks: int) -> Heads:
    """Each rank's heads; one latent vector serves all of them."""
    return heads._replace(queries=int(heads.queries) // ranks, keys=int(heads.keys) // ranks)


def _thinner(part: RunningPart, ranks: int) -> RunningPart:
    """What runs on each rank: all of what is between blocks, a share of what is inside (Korthikanti et al. 2022, section 4.2)."""
    what = part.what
    if ranks == 1:
        return part
    if isinstance(what, AttentionRun):
        what = what._replace(heads=_fewer(what.heads, ranks))
    elif isinstance(what, FeedForward):
        what = what._replace(inner=-(-int(what.inner) // ranks))
    elif isinstance(what, Routing):
        what = what._replace(feed=what.feed._replace(inner=-(-int(what.feed.inner) // ranks)))
    elif isinstance(what, Norm) and what.inner:
        what = what._replace(times=-(-int(what.times) // ranks))
    return part._replace(what=what)


# -- expert parallel ------------------------------------------------------------------------------


def _expert_parallel(entries: Sequence[Entry], ranks: int) -> Iterator[Entry]:
    each = _experts(entries) // ranks
    for entry in entries:
        if entry.role != "experts":
            yield entry
        elif len(entry.axes) < 2:
            yield _over(entry, 0, ranks)
        elif numbers := within(entry.axes[-1], 0, each):  # experts held one by one
            yield entry._replace(axes=(*entry.axes[:-1], numbers))


def _experts(entries: Iterable[Entry]) -> int:
    """How many routed experts a layer has."""
    counts = [
        int(sum(entry.axes[-1])) if len(entry.axes) > 1 else int(entry.shape[0])
        for entry in entries
        if entry.role == "experts"
    ]
    return max(counts, default=0)
