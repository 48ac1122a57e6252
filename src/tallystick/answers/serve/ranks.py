"""Shard a model as serving engines do: uneven pipelines, replicated KV heads, padded heads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tallystick.answers.memory import model_states
from tallystick.answers.memory.activations import head_of
from tallystick.answers.memory.number_formats import bytes_of
from tallystick.answers.memory.pipeline import Stage, layers_of, of_stage, on_stage, stacked
from tallystick.answers.memory.placement import Shards
from tallystick.answers.memory.sharding import divided
from tallystick.answers.serve.allocations import reserved
from tallystick.core.anatomy import AttentionRun, FeedForward, Routing
from tallystick.core.dtypes import BITS
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.runtimes.engines import Experts, Rank

_VOCABULARY = ("token_embedding", "head")
_KERNELS = (
    "conv_kernel_dim", "linear_conv_kernel_dim", "conv_kernel", "d_conv", "mamba_d_conv", "conv_size", "conv_L_cache",
    "short_conv_kernel_size",
)  # fmt: skip
_USED = ("num_experts_per_tok", "moe_topk", "moe_k")
_FP4 = "float4_e2m1fn"
_CALIBRATED = ("awq", "gptq")  # formats whose published checkpoints keep towers in 16 bits
SMALLEST = 1024  # rows and columns of a recurrent layer's projection that is quantised
MOST_LAYERS = 100_000  # of a model whose layers are distinguished


def ranks_of(ledger: Ledger, form: str | None, computed: str, tp: int, pp: int, *, padded: int) -> list[Rank]:
    """Return the first device of each pipeline stage.

    Args:
        ledger: the whole model.
        form: number format of the weights; None: as stored.
        computed: dtype of activations.
        tp: tensor parallel ranks.
        pp: pipeline stages.
        padded: the vocabulary is padded to a multiple of this.
    """
    part = _sharded(ledger, tp, padded)
    spread = divided_layers(layers_of(map(stacked, part.parameters)), pp)
    begin, ranks = 0, []
    for number, layers in enumerate(spread):
        ranks.append(_rank(ledger, part, Stage(number, pp, layers, begin), form, computed, tp))
        begin += layers
    return ranks


def divided_layers(layers: int, pp: int) -> list[int]:
    """Return the layers of each stage; those left over go to the stages before the last.

    `get_pp_indices` in `vllm/distributed/utils.py`.

    >>> divided_layers(126, 16)[:3], divided_layers(126, 16)[-3:]
    ([7, 8, 8], [8, 8, 7])
    """
    each, rest = divmod(layers, pp)
    found = [each] * pp
    for place in range(2, rest + 2):
        found[-place] += 1
    return found


def refusal(ledger: Ledger, tp: int, padded: int) -> str:
    """Return the error of a model that tensor parallel ranks do not divide; "" if they do."""
    for one in ledger.model.attending:
        if int(one.heads.queries) % tp:
            return (
                f"ValueError: Total number of attention heads ({int(one.heads.queries)}) must be divisible by"
                f" tensor parallel size ({tp})."
            )
    rows = {_padded(int(one.shape[0]), padded) for one in ledger.parameters if one.role in _VOCABULARY}
    for number in sorted(rows):
        if number % tp:
            return f"AssertionError: {number} is not divisible by {tp}"
    for one in ledger.model.attending:
        keys = int(one.heads.keys)
        if one.heads.latent is None and keys % tp and tp % keys:
            return f"AssertionError: {max(keys, tp)} is not divisible by {min(keys, tp)}"
    return ""


def _padded(number: int, step: int) -> int:
    return -(-number // step) * step


def _sharded(ledger: Ledger, tp: int, padded: int) -> Ledger:
    """Return the model of one tensor parallel rank."""
    whole = replace(ledger, rolled=tuple(_with_rows(entry, padded) for entry in ledger.rolled))
    part = divided(whole, Shards(tp=tp)) if tp > 1 else replace(whole, rolled=tuple(map(stacked, whole.rolled)))
    model = ledger.model
    attending = tuple(
        one._replace(heads=one.heads._replace(keys=max(int(own.heads.keys) // tp, 1), queries=one.heads.queries))
        for own, one in zip(model.attending, part.model.attending, strict=True)
    )
    recurring = tuple(
        one._replace(keeps=one.keeps._replace(inputs=int(one.keeps.inputs) // tp, state=int(one.keeps.state) // tp))
        for one in model.recurring
    )
    rolled = tuple(_recurrent(entry, tp) for entry in part.rolled)
    return replace(part, rolled=rolled, model=replace(part.model, attending=attending, recurring=recurring))


def _with_rows(entry: Entry, padded: int) -> Entry:
    if entry.role not in _VOCABULARY or len(entry.shape) != 2:
        return entry
    shape = (_padded(int(entry.shape[0]), padded), int(entry.shape[1]))
    grown = entry._replace(shape=shape)
    return grown._replace(unique=grown.size if entry.unique else 0)


def _recurrent(entry: Entry, tp: int) -> Entry:
    """Return a recurrent layer's tensor divided over ranks, which transformers' plans replicate."""
    if tp == 1 or entry.role not in ("ssm", "conv") or not entry.shape:
        return entry
    place = max(range(len(entry.shape)), key=lambda axis: int(entry.shape[axis]))
    shape = tuple(-(-int(size) // tp) if axis == place else int(size) for axis, size in enumerate(entry.shape))
    smaller = entry._replace(shape=shape)
    return smaller._replace(unique=smaller.size if entry.unique else 0)


def _rank(ledger: Ledger, part: Ledger, stage: Stage, form: str | None, computed: str, tp: int) -> Rank:
    one, own = (
        of_stage(part, stage),
        [_quantised(entry, form, ledger.model.towers) for entry in on_stage(part.parameters, stage)],
    )
    width = BITS[computed] // 8
    lines = [*model_states.weights(own, form), *model_states.quantisation(one, form)]
    runs = [run.what for run in one.model.parts]
    feeds = [what for what in runs if isinstance(what, FeedForward)]
    values = {} if ledger.model.recipe is None else dict(ledger.model.recipe.values)
    towers = ledger.model.towers
    read = [entry for entry in ledger.parameters if not (towers and entry.name.startswith(towers))]
    embedding = next((entry for entry in read if entry.role == "token_embedding"), None)
    head = head_of(ledger)
    hidden = int(embedding.shape[-1]) if embedding is not None else int(head.shape[-1]) if head is not None else 0
    stated = _stated(values, ("intermediate_size", "ffn_hidden_size", "n_inner")) or 4 * hidden
    weights, copies = sum(line.bytes for line in lines), _replicated(ledger, stage, tp, width)
    return Rank(
        weights=weights + copies,
        reserved=max(reserved(own, form), weights) + copies,
        attention=_bytes_of_role(own, "attention", form) + copies,
        routed=_bytes_of_role(own, "experts", form),
        low_rank=sum(_low_rank(entry) for entry in own) * width,
        attending=one.model.attending,
        recurring=one.model.recurring,
        kernel=_stated(values, _KERNELS) or 4,
        hidden=hidden,
        inner=max((int(feed.inner) for feed in feeds), default=-(-stated // tp)),
        gated=any(feed.gated for feed in feeds) or not feeds,
        vocabulary=0 if head is None else int(head.shape[0]),
        architecture=ledger.model.architecture or "",
        positions=ledger.model.positions,
        stretch=ledger.model.stretch,
        experts=_experts(one, values, form, hidden, tp),
        width=width,
        first=stage.number == 0,
        last=stage.last,
        vision=_vision(values) or ledger.model.vision,
        shared=max((int(feed.inner) for feed in _shared(one)), default=0),
        fused=any(what.fused for what in runs if isinstance(what, AttentionRun)),
        **_by_layer(own, form),
    )


def _vision(values: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the sizes of the vision tower, by the keys of its config."""
    begin = "vision_config."
    return tuple(
        (name.removeprefix(begin), value)
        for name, value in values.items()
        if name.startswith(begin) and type(value) is int
    )


def _shared(part: Ledger) -> list[FeedForward]:
    """Return the MLPs of shared experts."""
    return [run.what for run in part.model.parts if isinstance(run.what, FeedForward) and "shared" in run.name]


def _quantised(entry: Entry, form: str | None, towers: tuple[str, ...]) -> Entry:
    """Return an entry with the role by which engines quantise it.

    A recurrent layer's projections are as an attention's; calibrated formats leave towers out.
    """
    if form is not None and form.startswith(_CALIBRATED) and towers and entry.name.startswith(towers):
        return entry._replace(role="other")
    if form is None or entry.role != "ssm" or len(entry.shape) < 2 or min(map(int, entry.shape)) < SMALLEST:
        return entry
    return entry._replace(role="attention")


def _bytes_of_role(entries: Iterable[Entry], role: str, form: str | None) -> int:
    return sum(bytes_of(entry, form) for entry in entries if entry.role == role)


def _low_rank(entry: Entry) -> int:
    """Return the elements of a LoRA adapter of rank 1 on an entry: A's columns and B's rows.

    An engine holds the adapter's part for this device: `lora_a_stacked` and `lora_b_stacked` in
    `vllm/lora/layers/`.
    """
    if entry.role not in ("attention", "mlp", "experts") or len(entry.shape) < 2 or not entry.unique:
        return 0
    *experts, rows, columns = map(int, entry.shape)
    times = 1
    for number in experts:
        times *= number
    return times * (rows + columns) * entry.copies


def _by_layer(entries: Iterable[Entry], form: str | None) -> dict[str, Any]:
    """Return the bytes of each layer, of the embeddings, and of all that belongs to no layer."""
    layers: dict[int, int] = {}
    routed: dict[int, int] = {}
    embedding = head = 0
    held = list(entries)
    if any(int(entry.axes[0].length) > MOST_LAYERS for entry in held if entry.axes):
        return {}
    for entry in held:
        one = bytes_of(entry, form)
        if entry.axes:
            start, length = int(entry.axes[0].start), int(entry.axes[0].length)
            for number in range(start, start + length):
                layers[number] = layers.get(number, 0) + one // length
                routed[number] = routed.get(number, 0) + (one // length if entry.role == "experts" else 0)
        elif entry.role in ("token_embedding", "position_embedding"):
            embedding += one
        else:
            head += one
    tied = not any(entry.role == "head" and entry.unique for entry in held)
    copy = sum(bytes_of(entry, form) for entry in held if entry.role == "token_embedding") if tied else 0
    numbers = sorted(layers)
    sizes = tuple(layers[number] for number in numbers)
    experts = tuple(routed[number] for number in numbers)
    return {"layers": sizes, "routed_layers": experts, "embedding": embedding, "head": head + copy, "tied": tied}


def _replicated(ledger: Ledger, stage: Stage, tp: int, width: int) -> int:
    """Return the bytes of KV heads that several ranks hold, beyond an equal share."""
    total = 0.0
    reads = {run.name: int(run.what.reads) for run in ledger.model.parts if isinstance(run.what, AttentionRun)}
    for one in ledger.model.attending:
        keys = int(one.heads.keys)
        if one.heads.latent is not None or keys >= tp:
            continue
        missing = 1 - keys / tp
        rows = missing * (int(one.heads.size) + int(one.heads.value_size))
        total += int(one.layers) * rows * reads.get(one.name, max(reads.values(), default=0)) * width
    return round(total / stage.of)


def _experts(part: Ledger, values: dict[str, Any], form: str | None, hidden: int, tp: int) -> Experts | None:
    """Return a layer's routed experts, from its running parts or else from the config's keys."""
    packed = _packed(part, form)
    for run in part.model.parts:
        if isinstance(run.what, Routing):
            return Experts(int(run.what.used), int(run.what.feed.inner), int(run.what.feed.reads), packed)
    if not any(entry.role == "experts" for entry in part.parameters):
        return None
    used, inner = _stated(values, _USED), _stated(values, ("moe_intermediate_size", "intermediate_size"))
    return Experts(used or 1, -(-(inner or 4 * hidden) // tp), hidden, packed)


def _packed(part: Ledger, form: str | None) -> int:
    """Return the bytes of MXFP4 experts; 0 if they are unpacked, or have another format."""
    experts = [entry for entry in part.parameters if entry.role == "experts"]
    if form is not None or not any(entry.dtype == _FP4 for entry in experts):
        return 0
    return sum(entry.bytes * entry.copies for entry in experts)


def _stated(values: dict[str, Any], keys: Iterable[str]) -> int | None:
    """Return the first key's value, at the top of a config or in its text config."""
    for key in keys:
        for name, value in values.items():
            text = name.rpartition(".")[2] == key and not name.startswith(("vision", "audio"))
            if text and isinstance(value, int) and not isinstance(value, bool):
                return int(value)
    return None
