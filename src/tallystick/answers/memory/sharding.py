"""Shard a model over ranks: replace each tensor by the shard of one rank.

A shard is an ordinary entry with a smaller shape. So all code that counts bytes counts one rank's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tallystick.answers.memory.pipeline import stacked, within
from tallystick.answers.memory.placement import Shards, experts_of
from tallystick.core.anatomy import AttentionRun, FeedForward, Heads, Norm, Routing, RunningPart
from tallystick.core.entries import Entry
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Ledger

# Row-parallel projections, whose outputs are summed over tensor parallel ranks: sharded by input
# features, with whole biases. And low-rank projections that are too narrow to shard (Shoeybi et al.
# 2019, "Megatron-LM", section 3; DeepSeek-AI 2024, "DeepSeek-V2", section 2.1).
_SUMMED = ("o_proj", "out_proj", "c_proj", "dense", "down_proj", "fc2", "fc_out", "dense_4h_to_h", "output")
_WHOLE = ("q_a_proj", "kv_a_proj_with_mqa")
_VOCABULARY = ("token_embedding", "head")

# First ZeRO stage that shards each of these (Rajbhandari et al. 2020, "ZeRO", section 5).
WHAT = {"optimizer": 1, "gradients": 2, "weights": 3}


def shard(entries: Iterable[Entry], shards: Shards, what: str, rank: int = 0) -> list[Entry]:
    """Return the shards that one data parallel rank holds.

    ZeRO stages 1 and 2 share elements (Rajbhandari et al. 2020, "ZeRO", section 5); stage 3 is
    `fully_shard` here. `fully_shard` gives each rank the same number of rows of every tensor. If
    the rows do not divide, weights and gradients are padded; the optimizer has no state for the
    padding. So the first rank is the busiest.

    Args:
        entries: tensors of one tensor and expert parallel rank, from `divided`.
        shards: the parallelism.
        what: ``weights``, ``gradients`` or ``optimizer``.
        rank: the data parallel rank; it matters for the optimizer at stage 3.
    """
    if shards.zero < WHAT[what]:
        return list(entries)
    if shards.zero < WHAT["weights"]:  # concatenated, and cut into equal parts
        return [_part(entry, sharing(entry, shards)) for entry in entries]
    return [_rows(entry, sharing(entry, shards), rank if what == "optimizer" else 0) for entry in entries]


def sharing(entry: Entry, shards: Shards) -> int:
    """Return the number of data parallel ranks that share an entry: fewer for experts."""
    return shards.data // shards.ep if entry.role == "experts" else shards.data


def divided(ledger: Ledger, shards: Shards) -> Ledger:
    """Return the model of one tensor and expert parallel rank: its matrices, heads and experts.

    Args:
        ledger: the whole model.
        shards: the parallelism.

    Returns:
        A ledger of one rank, with its layers `stacked`.
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
    """Return the notes about a sharded model."""
    if shards == Shards():
        return []
    notes = [f"per GPU (busiest of {shards.ranks:,}); batch size is per data-parallel rank"]
    if shards.tp > 1 and training:
        notes.append(
            "each tensor-parallel rank gathers all logits, as in transformers' plans; a parallel loss keeps"
            f" 1/{shards.tp:,} of them (Shoeybi et al. 2019, Megatron-LM, section 3)"
        )
    if shards.tp > 1 and any(one.heads.latent is not None for one in ledger.model.attending):
        notes.append("latent-attention heads are sharded; transformers' plans replicate them")
    if shards.tp > 1 and ledger.model.recurring:
        notes.append(
            "recurrent weights and states are replicated on each tensor-parallel rank, as in transformers' plans"
        )
    if shards.pp > 1 and training:
        notes.append(
            f"batch is a micro-batch; the first stage keeps activations of {shards.pp:,}, the last stage of"
            " one (Narayanan et al. 2021, section 2.2)"
        )
    if shards.ep > 1 and training:
        notes.append("assumes tokens spread evenly over experts")
    if shards.zero in (1, 2):
        notes.append("not counted: the framework's gradient communication buffers")
    for tie in ledger.ties:
        if tie.relation != "tied":
            continue
        pair = " = ".join(tie.names)
        if shards.pp > 1:
            notes.append(f"{pair}: the first and last stage each hold a copy, and must sum the gradients")
        if shards.zero == WHAT["weights"]:
            notes.append(f"{pair}: keep both names in one fully_shard unit, or the tie is lost")
        if shards.tp > 1:
            notes.append(
                f"{pair}: one vocabulary shard serves both uses; parallelize_module splits it in two, so tie again"
            )
    return notes


def _rows(entry: Entry, ranks: int, rank: int) -> Entry:
    """Return one rank's rows: ceil(rows / ranks), or fewer for the last ranks."""
    if ranks == 1 or not entry.unique or not entry.shape:
        return entry
    first, *rest = entry.shape
    each = -(-int(first) // ranks)
    return _cut(entry, (max(min(int(first) - rank * each, each), 0), *rest))


def _part(entry: Entry, ranks: int) -> Entry:
    """Return one of `ranks` equal parts of the elements, with the same number of dimensions."""
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
    if entry.role in _VOCABULARY:  # rows of the vocabulary; a tied matrix has the same rows for both uses
        return _over(entry, 0, ranks)
    *_, module, word = ("", *entry.called.split("."))
    name = module if word in ("weight", "bias") else word.removesuffix("_bias")
    if entry.role not in ("attention", "mlp", "experts") or name in _WHOLE or "norm" in name:
        return entry
    last = len(entry.shape) - 1
    if last < 1 or word.endswith("bias"):
        return entry if name in _SUMMED else _over(entry, last, ranks)
    place, other = (last, last - 1) if name in _SUMMED else (last - 1, last)
    # For a transposed matrix the other axis is meant. The size is the same, up to padding.
    return _over(entry, other if int(entry.shape[place]) % ranks else place, ranks)


def _over(entry: Entry, place: int, ranks: int) -> Entry:
    shape = list(entry.shape)
    if not shape:
        return entry
    shape[place] = -(-int(shape[place]) // ranks)
    return _cut(entry, tuple(shape))


def _fewer(heads: Heads, ranks: int) -> Heads:
    """Return one rank's heads; every rank holds the whole latent vector."""
    return heads._replace(queries=int(heads.queries) // ranks, keys=int(heads.keys) // ranks)


def _thinner(part: RunningPart, ranks: int) -> RunningPart:
    """Return one rank's part: whole between blocks, sharded inside.

    See Korthikanti et al. 2022, section 4.2.
    """
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
    each = experts_of(entries) // ranks
    for entry in entries:
        if entry.role != "experts":
            yield entry
        elif len(entry.axes) < 2:
            yield _over(entry, 0, ranks)
        elif numbers := within(entry.axes[-1], 0, each):  # experts stored one by one
            yield entry._replace(axes=(*entry.axes[:-1], numbers))
