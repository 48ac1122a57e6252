"""llama.cpp: the buffers that it allocates on a device and in the host's memory, and logs.

It allocates all it will use at its start: weights, KV cache, recurrent states, and the buffers of
the largest graph. Rules name llama.cpp's own sources and the build from which they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.errors import BadInput
from tallystick.runtimes.engines import MIB, Card, LogLine, Rank, Served, Settings
from tallystick.runtimes.llama_cpp.buffers import Buffers, cells
from tallystick.runtimes.llama_cpp.fitting import MARGIN, fitted
from tallystick.runtimes.llama_cpp.releases import NEWEST

FIT, CLIP, ALLOCATOR = "common/fit.cpp", "tools/mtmd/clip.cpp", "ggml/src/ggml-alloc.c"
MODEL, CACHE, CONTEXT = "src/llama-model.cpp", "src/llama-kv-cache.cpp", "src/llama-context.cpp"
MOST_LAYERS = 512  # src/llama-hparams.h
# Bytes of a cached element. A block of 32 elements has a scale, and some formats a minimum
# (ggml/src/ggml-common.h).
CACHES: dict[str, float | None] = {
    "auto": 2.0, "f16": 2.0, "bf16": 2.0, "f32": 4.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32,
    "q4_1": 20 / 32, "q4_0": 18 / 32, "iq4_nl": 18 / 32,
}  # fmt: skip


class LlamaCpp:
    """The engine llama.cpp."""

    name = "llama.cpp"
    padded_vocabulary = 1
    caches = CACHES
    images: tuple[str, ...] = ()
    strict = False

    def release_of(self, version: str | None) -> str:
        """Return the build that is planned: the given one, or the newest whose rules are read."""
        return version or f"b{NEWEST}"

    def loaded(self, rank: Rank, version: str | None, *, learned: bool) -> Rank:
        """Return the rank unchanged: rotary embeddings are computed."""
        return rank

    def serve(self, ranks: Sequence[Rank], settings: Settings, card: Card) -> Served:
        """Plan the buffers as llama.cpp allocates them at its start."""
        if settings.tp > 1:
            raise BadInput(
                "llama.cpp divides layers, not tensors: give --pp 2 or --tensor-split 3,1 for several devices",
                code="unsupported",
            )
        (rank,) = ranks
        if not 0 < len(rank.layers) <= MOST_LAYERS:
            raise BadInput(
                f"llama.cpp holds models of 1 to {MOST_LAYERS} layers (LLAMA_MAX_LAYERS), this one has"
                f" {len(rank.layers) or 'another number'}",
                code="unsupported",
            )
        settings = _fitted(rank, settings, card)
        buffers = Buffers(rank, settings)
        lines = _lines(buffers, settings)
        error = _error(buffers, settings, card)
        return Served(
            weights=buffers.weights[0],
            activations=buffers.computes[0][0],
            other=buffers.states[0],
            kv=buffers.kept(0),
            kv_per_token=buffers.per_token,
            kv_tokens=buffers.context,
            concurrency=1.0,
            blocks=buffers.context,
            used={
                "max_num_seqs": buffers.requests,
                "max_num_batched_tokens": buffers.step,
                "gpu_layers": buffers.layers,
                **({"cpu_moe_layers": settings.experts_on_host} if settings.experts_on_host else {}),
                **({"max_model_len": buffers.context} if settings.length_fitted else {}),
            },
            lines=(*lines, LogLine(error, "", "ggml/src/ggml-backend.cpp")) if error else lines,
            error=error,
            longest=_longest(rank, settings, card, buffers) if error else buffers.context,
            limits=(f"n_ctx: {buffers.context:,} tokens, shared by all slots ({buffers.requests})",),
            notes=_notes(buffers, settings),
            host=buffers.host,
        )

    def per_request(self, ranks: Sequence[Rank], settings: Settings, card: Card, tokens: int) -> float:
        """Return how many requests of this length the context holds, up to the slots."""
        (rank,) = ranks
        buffers = Buffers(rank, _fitted(rank, settings, card))
        return min(buffers.requests, buffers.context // tokens)


def _error(buffers: Buffers, settings: Settings, card: Card) -> str:
    """Return the error of what cannot be allocated; "" if all is."""
    quantised = settings.kv_width if settings.value_width is None else settings.value_width
    if settings.eager and quantised < 2:
        return "llama_init_from_model: V cache quantization requires flash_attn"
    for number in range(len(buffers.shares)):
        if buffers.held(number) > (settings.free or card.memory):
            return f"error: failed to allocate CUDA{number} buffer: cudaMalloc failed: out of memory"
    return ""


def _fitted(rank: Rank, settings: Settings, card: Card) -> Settings:
    """Return the settings, with what ``--fit`` chooses if it is asked for."""
    free = settings.free or card.memory - card.reserved
    return fitted(rank, settings, free) if settings.layers_fitted else settings


def _lines(buffers: Buffers, settings: Settings) -> tuple[LogLine, ...]:
    """Return the lines of the log that state a buffer, as the current builds word them."""
    return (*_of_weights(buffers, settings), *_of_caches(buffers), *_of_graphs(buffers))


def _of_weights(buffers: Buffers, settings: Settings) -> Iterator[LogLine]:
    count = len(buffers.rank.layers) + 1
    offloaded = f"load_tensors: offloaded {buffers.layers}/{count} layers to GPU"
    yield LogLine(offloaded, "the layers and the head", f"{MODEL}; {FIT}" if settings.layers_fitted else MODEL)
    host = buffers.host_weights
    if host:
        text = f"load_tensors:   CPU_Mapped model buffer size = {_mib(host)}"
        yield LogLine(text, f"token embedding and layers kept: {host:,} B", MODEL)
    for number, held in enumerate(buffers.weights):
        size = held - (buffers.projector if number == 0 else 0)
        if size:
            layers = f"{buffers.place.count(number)} layers{' and the head' if number == buffers.head_place else ''}"
            text = f"load_tensors: {_on(number):>12} model buffer size = {_mib(size)}"
            yield LogLine(text, f"{layers}: {size:,} B", MODEL)
    if buffers.projector:
        size = buffers.projector
        yield LogLine(f"load_hparams: model size: {_mib(size)}", f"towers, in 16 bits: {size:,} B", CLIP)


def _of_caches(buffers: Buffers) -> Iterator[LogLine]:
    yield LogLine(
        f"llama_context:  CUDA_Host  output buffer size = {_mib(buffers.output)}",
        f"{buffers.requests} slots × {buffers.rank.vocabulary:,} × 4 B",
        CONTEXT,
    )
    for part in buffers.parts:
        yield LogLine(
            f"llama_kv_cache: {part.where:>10} KV buffer size = {_mib(part.bytes)}",
            f"{part.layers} layers × {part.cells:,} cells × {part.bytes // max(part.layers * part.cells, 1):,} B",
            CACHE,
        )
    for number, size in enumerate(buffers.states):
        if size:
            where = "CPU" if number == len(buffers.shares) else _on(number)
            yield LogLine(
                f"llama_memory_recurrent: {where:>10} RS buffer size = {_mib(size)}",
                "convolution and recurrent states in float32, of each slot",
                "src/llama-memory-recurrent.cpp",
            )


def _of_graphs(buffers: Buffers) -> Iterator[LogLine]:
    for number, (size, why) in enumerate(buffers.computes):
        if size:
            text = f"sched_reserve: {_on(number):>10} compute buffer size = {_mib(size)}"
            yield LogLine(text, why, f"{CONTEXT}; {ALLOCATOR}")
    yield LogLine(
        f"sched_reserve:  CUDA_Host compute buffer size = {_mib(buffers.host_compute)}",
        f"masks of {buffers.mask_cells:,} cells and embeddings of {buffers.graph.step:,} tokens",
        f"{CONTEXT}; {ALLOCATOR}",
    )


def _on(number: int) -> str:
    return f"CUDA{number}"


def _mib(size: int) -> str:
    return f"{size / MIB:8.2f} MiB"


def _longest(rank: Rank, settings: Settings, card: Card, buffers: Buffers) -> int:
    """Return the longest context with which the buffers fit the device."""
    low, high = 0, buffers.context
    while high - low > 256:
        middle = cells((low + high) // 2)
        fits = not _error(Buffers(rank, settings._replace(max_model_len=middle)), settings, card)
        low, high = (middle, high) if fits and middle > low else (low, min(middle, high - 256))
    return low


def _notes(buffers: Buffers, settings: Settings) -> tuple[str, ...]:
    notes = []
    if settings.version is None:
        notes.append(f"assumed build b{NEWEST}; --engine-version names another, such as b6500")
    if settings.layers_fitted:
        notes.append(f"--gpu-layers auto leaves {MARGIN // MIB:,} MiB of the device free, as builds since b7400 do")
    else:
        notes.append("the CUDA context and what --fit would change are not counted")
    if buffers.first or settings.experts_on_host:
        notes.append("layers in the host's memory are slower: the bounds on speed take all at the device's bandwidth")
    if buffers.projector:
        notes.append("the compute buffer for images is not counted: it depends on their sizes")
    if settings.speculative and settings.speculative != "ngram":
        notes.append("a draft model has a context and buffers of its own, which are not counted")
    return tuple(notes)


LLAMA_CPP = LlamaCpp()
