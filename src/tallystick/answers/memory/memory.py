"""Memory needed for inference or training: the lines of each rank, and the busiest of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypedDict

from tallystick.answers.devices import Device
from tallystick.answers.lora import with_adapters
from tallystick.answers.memory import model_states
from tallystick.answers.memory.activations import (
    ATTENTION,
    LOSS,
    RECOMPUTE,
    logits,
    recomputed,
    running_of,
    saved,
    unmodelled,
)
from tallystick.answers.memory.answer import MODES, Memory
from tallystick.answers.memory.collectives import gathered
from tallystick.answers.memory.gguf import as_gguf
from tallystick.answers.memory.gguf_rules import FILE_TYPES
from tallystick.answers.memory.kv_cache import bytes_per_token, cache_lines, cache_notes, state_lines
from tallystick.answers.memory.lines import PARTS, Line
from tallystick.answers.memory.model_states import PRECISIONS, Precision
from tallystick.answers.memory.number_formats import PACKED, cache_format_named, format_named
from tallystick.answers.memory.optimizers import OPTIMIZERS
from tallystick.answers.memory.pipeline import of_stage, on_stage, stages
from tallystick.answers.memory.placement import Shards, checked
from tallystick.answers.memory.prefill import last_logits, prefill
from tallystick.answers.memory.sharding import WHAT, divided, rank_notes, shard
from tallystick.answers.workload import workload
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, nearest, quoted
from tallystick.runtimes import Running, Runtime
from tallystick.runtimes.transformers import TRANSFORMERS


def memory(
    ledger: Ledger,
    *,
    mode: str = "inference",
    dtype: str | None = None,
    batch: int = 1,
    sequence: int | None = None,
    kv_dtype: str | None = None,
    optimizer: str = "adamw",
    precision: str = "pure",
    attention: str = "flash",
    recompute: str = "none",
    loss: str = "full",
    lora: int | None = None,
    targets: Sequence[str] = (),
    dp: int = 1,
    zero: int = 0,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    device: Device | None = None,
    runtime: Runtime = TRANSFORMERS,
) -> Memory:
    """Return the memory needed for inference or training.

    Args:
        ledger: the model, from a config, a checkpoint or a module.
        mode: ``"inference"`` or ``"training"``.
        dtype: of the weights; by default each tensor's own. Packed weights then count as stored,
            with scales.
        batch: sequences per pass.
        sequence: tokens per sequence; default: the number of learned positions, or 4,096.
        kv_dtype: of the KV cache; default: the dtype of the weights, or 16 bits if they are packed.
        optimizer: one of `OPTIMIZERS`.
        precision: ``"pure"``, everything in the weights' dtype; ``"mixed"``, float32 weights and
            bfloat16 products, as in torch.autocast; ``"master"``, 16-bit weights and gradients, and
            a float32 copy in the optimizer.
        attention: ``"flash"``, a kernel that saves no attention scores, or ``"eager"``.
        recompute: activation checkpointing: ``"none"``, ``"selective"`` (of attention), or
            ``"full"`` (all but the inputs of layers).
        loss: ``"full"``, from all logits at the same time, or ``"chunked"``.
        lora: rank of the adapters, the only trained weights; None trains all weights.
        targets: modules that get an adapter, such as ``q_proj``; () is every linear layer but the
            head.
        dp: data parallel ranks, each with its own `batch` sequences.
        zero: states that these ranks share: 1 optimizer, 2 also gradients, 3 also weights (FSDP).
        tp: tensor parallel ranks.
        pp: pipeline stages.
        ep: expert parallel ranks, a subset of the data parallel ones.
        device: the device that must hold the memory of one rank; None skips this check.
        runtime: the runtime that runs the model.

    Returns:
        The memory of one rank: with pipeline stages, of the busiest stage.

    Raises:
        BadInput: for an invalid word or number, for contradictory options, and for an unsupported
            cache format.
    """
    for what, word, known in (
        ("mode", mode, MODES),
        ("optimizer", optimizer, OPTIMIZERS),
        ("precision", precision, PRECISIONS),
        ("attention", attention, ATTENTION),
        ("recompute", recompute, RECOMPUTE),
        ("loss", loss, LOSS),
    ):
        _one_of(what, word, known)
    training = mode == "training"
    if targets and lora is None:
        raise BadInput("targets needs lora: give the rank too", code="conflicting-options")
    form = named = None if dtype is None else format_named(dtype)
    if named in FILE_TYPES:
        ledger, form = as_gguf(ledger, named), None
    asked = None if kv_dtype is None else cache_format_named(kv_dtype)
    sequence, notes = workload(ledger, batch, sequence)
    shards, part = checked(Shards(dp, zero, tp, pp, ep), ledger), ledger
    notes += unmodelled(ledger)
    if shards.ranks > 1:
        part, notes = divided(ledger, shards), [*notes, *rank_notes(ledger, shards, training=training)]
    entries = list(part.parameters) if lora is None else with_adapters(part, lora, targets)
    load = _Load(ledger, batch, sequence, attention, recompute, loss, running_of(ledger, runtime))
    if training:
        if asked:
            raise BadInput("kv_dtype is for inference: training has no KV cache", code="conflicting-options")
        how = model_states.precision_of(precision, form, _own(ledger), adapted=lora is not None)
        notes += [*(_adapter_notes(ledger) if lora is not None else ()), *_packed_notes(ledger, how.weights)]
        lines_of = partial(_training, load, how, precision, optimizer, shards)
        cached = computed = how.products
    else:
        if zero:
            raise BadInput("zero is for training: shard inference with tp, pp and ep", code="conflicting-options")
        computed = _computed(ledger, form)
        cached = asked or computed
        notes += [*_packed_notes(ledger, form), *cache_notes(ledger, cached, computed)]
        lines_of = partial(_inference, load, form, computed, cached)

    def answer(held: _Held) -> Memory:
        lines = sorted(lines_of(held), key=lambda line: PARTS.index(line.part))
        per_token = None if training else bytes_per_token(held.ledger, load.running, cached, computed)
        kept = () if training else part.parameters
        return Memory(ledger.source, mode, batch, sequence, tuple(lines), per_token, tuple(notes), device, named, kept)

    return max(map(answer, _held(part, entries, shards)), key=lambda one: one.total_bytes)


class _Load(NamedTuple):
    """What is run on the whole model, and how."""

    ledger: Ledger
    batch: int
    sequence: int
    attention: str
    recompute: str
    loss: str
    running: Running


class _Run(TypedDict):
    """The options that `saved` and `recomputed` share."""

    dtype: str
    attention: str
    recompute: str
    precision: str
    running: Running


class _Held(NamedTuple):
    """What one rank holds: the whole model, or a pipeline stage."""

    ledger: Ledger
    entries: list[Entry]  # its parameters, with adapters
    waiting: int = 1  # micro-batches whose activations it keeps
    last: bool = True  # whether it has the head


def _held(part: Ledger, entries: list[Entry], shards: Shards) -> list[_Held]:
    """Return what the ranks hold that can be the busiest."""
    if shards.pp == 1:
        return [_Held(part, entries)]
    return [
        _Held(of_stage(part, stage), on_stage(entries, stage), stage.waiting, stage.last)
        for stage in stages(part, shards.pp)
    ]


def _packed_notes(ledger: Ledger, form: str | None) -> list[str]:
    """Return a note on how a requested dtype is applied to packed weights."""
    if form is None or not model_states.is_packed(ledger):
        return []
    how = f"as unpacked and quantised again to {form}" if form in PACKED else f"unpacked, in {form}"
    return [f"the weights are stored packed, but counted {how}; omit the dtype to count them as stored"]


def _one_of(what: str, word: str, known: Iterable[str]) -> None:
    known = tuple(known)
    if word not in known:
        raise BadInput(
            f"{what} is {quoted(word)}, expected one of {', '.join(known)}{nearest(str(word), known)}", code="bad-value"
        )


# -- training -------------------------------------------------------------------------------------


def _training(
    load: _Load, how: Precision, precision: str, optimizer: str, shards: Shards, held: _Held
) -> Iterator[Line]:
    """Yield the lines of a training step on one rank."""
    run: _Run = {
        "dtype": how.products,
        "attention": load.attention,
        "recompute": load.recompute,
        "precision": precision,
        "running": load.running,
    }
    yield from _model_states(held.ledger, held.entries, how, optimizer, shards)
    yield from saved(held.ledger, load.batch, load.sequence, waiting=held.waiting, **run)
    if held.last:
        yield from logits(load.ledger, load.batch, load.sequence, dtype=how.products, loss=load.loss)
    loss = load.loss if held.last else "chunked"
    yield from recomputed(held.ledger, load.batch, load.sequence, loss=loss, **run)


def _own(ledger: Ledger) -> str:
    """Return the dtype of most weights."""
    widths = ledger.by("dtype")
    return max(widths, key=lambda name: widths[name], default="float32")


def _model_states(ledger: Ledger, entries: list[Entry], how: Precision, optimizer: str, shards: Shards) -> list[Line]:
    parameters = model_states.parameters_of(entries, live=ledger.kind == "module")
    trained = model_states.trained(parameters, how, ledger.source)

    def share(what: str) -> list[tuple[Entry, str]]:
        parts = shard([entry for entry, _ in trained], shards, what)
        return [(part, dtype) for part, (_, dtype) in zip(parts, trained, strict=True)]

    return [
        *model_states.weights(shard(entries, shards, "weights"), how.weights),
        *model_states.quantisation(ledger, how.weights),
        *model_states.buffers(ledger, how.weights),
        model_states.gradients(share("gradients")),
        *model_states.optimizer(share("optimizer"), optimizer, how),
        *(model_states.backward_buffers(ledger, trained) if shards.zero < WHAT["weights"] else ()),
        *gathered(ledger, entries, how.weights, trained, shards),
    ]


def _adapter_notes(ledger: Ledger) -> list[str]:
    notes = ["activations are estimated as for full training; LoRA needs about the same"]
    if any(entry.role == "experts" and len(entry.shape) == 3 for entry in ledger.parameters):
        notes.append("fused experts and routers get no adapter here; PEFT adapts them in Mixtral and Qwen")
    return notes


# -- inference ------------------------------------------------------------------------------------


def _inference(load: _Load, form: str | None, computed: str, cached: str, held: _Held) -> Iterator[Line]:
    """Yield the lines of inference on one rank."""
    one, running, batch, sequence = held.ledger, load.running, load.batch, load.sequence
    yield from model_states.weights(held.entries, form)
    yield from model_states.quantisation(one, form)
    yield from model_states.buffers(one, form)
    yield from cache_lines(one, running, cached, computed, batch, sequence)
    yield from state_lines(one, running, computed, batch)
    yield from prefill(one, batch, sequence, dtype=computed, attention=load.attention, running=running)
    if held.last:
        yield from last_logits(load.ledger, batch, dtype=computed)


def _computed(ledger: Ledger, form: str | None) -> str:
    """Return the dtype of products in inference: of most weights, or 16 bits if they are packed."""
    if form is None:
        own = _own(ledger)
        return own if own in model_states.TRAINED else _unpacked(ledger)
    return "float16" if form in PACKED or form not in model_states.TRAINED else form


def _unpacked(ledger: Ledger) -> str:
    """Return the 16-bit dtype of most unpacked elements, in which packed weights are multiplied."""
    sizes = ledger.by("dtype")
    return max(("float16", "bfloat16"), key=lambda name: sizes.get(name, 0))
