"""llama.cpp: the buffers that it allocates on a device and in the host's memory, and logs.

It allocates all it will use at its start: weights, KV cache, recurrent states, and the buffers of
the largest graph. Rules name llama.cpp's own sources; those of the compute buffers are read from
its logs, and are of CUDA builds of 2024 and 2025 (up to about b7000).
"""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.errors import BadInput
from tallystick.runtimes.engines import MIB, Card, LogLine, Rank, Served, Settings
from tallystick.runtimes.llama_cpp.buffers import Buffers, cells
from tallystick.runtimes.llama_cpp.fitting import MARGIN, fitted

FIT = "common/fit.cpp"
MODEL, CACHE, CONTEXT = "src/llama-model.cpp", "src/llama-kv-cache.cpp", "src/llama-context.cpp"
BUILD = "b6500"
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
        """Return the build that is planned: the given one, or one of those judged."""
        return version or BUILD

    def loaded(self, rank: Rank, version: str | None, *, learned: bool) -> Rank:
        """Return the rank unchanged: rotary embeddings are computed."""
        return rank

    def serve(self, ranks: Sequence[Rank], settings: Settings, card: Card) -> Served:
        """Plan the buffers as llama.cpp allocates them at its start."""
        if settings.tp > 1 or settings.pp > 1:
            raise BadInput(
                "llama.cpp is planned on one device: give --gpu-layers for the layers that it holds",
                code="unsupported",
            )
        (rank,) = ranks
        settings = _fitted(rank, settings, card)
        buffers = Buffers(rank, settings)
        lines = _lines(buffers, settings)
        error = ""
        if buffers.device > (settings.free or card.memory):
            last = "cudaMalloc failed: out of memory"
            error = f"error: failed to allocate CUDA0 buffer: {last}"
        return Served(
            weights=buffers.weights,
            activations=buffers.compute,
            other=buffers.states,
            kv=buffers.cache,
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


def _fitted(rank: Rank, settings: Settings, card: Card) -> Settings:
    """Return the settings, with what ``--fit`` chooses if it is asked for."""
    free = settings.free or card.memory - card.reserved
    return fitted(rank, settings, free) if settings.layers_fitted else settings


def _lines(buffers: Buffers, settings: Settings) -> tuple[LogLine, ...]:
    """Return the lines of the log that state a buffer, as the current builds word them."""
    loaded = [
        ("load_tensors:   CPU_Mapped model buffer size = {}", buffers.host_weights, "token embedding and layers kept"),
        ("load_tensors:        CUDA0 model buffer size = {}", buffers.weights, f"{buffers.layers} layers and the head"),
    ]
    count = len(buffers.rank.layers) + 1
    offloaded = f"load_tensors: offloaded {buffers.layers}/{count} layers to GPU"
    lines = [LogLine(offloaded, "the layers and the head", f"{MODEL}; {FIT}" if settings.layers_fitted else MODEL)]
    lines += [LogLine(text.format(_mib(size)), f"{what}: {size:,} B", MODEL) for text, size, what in loaded if size]
    lines.append(
        LogLine(
            f"llama_context:  CUDA_Host  output buffer size = {_mib(buffers.output)}",
            f"{buffers.requests} slots × {buffers.rank.vocabulary:,} × 4 B",
            CONTEXT,
        )
    )
    for part in buffers.parts:
        lines.append(
            LogLine(
                f"llama_kv_cache: {part.where:>10} KV buffer size = {_mib(part.bytes)}",
                f"{part.layers} layers × {part.cells:,} cells × {part.bytes // max(part.layers * part.cells, 1):,} B",
                CACHE,
            )
        )
    if buffers.states:
        lines.append(
            LogLine(
                f"llama_memory_recurrent:      CUDA0 RS buffer size = {_mib(buffers.states)}",
                "convolution and recurrent states in float32, of each slot",
                "src/llama-memory-recurrent.cpp",
            )
        )
    device = [
        LogLine(
            f"llama_context:      CUDA0 compute buffer size = {_mib(buffers.compute)}", buffers.why, f"{CONTEXT}; logs"
        )
    ]
    host = LogLine(
        f"llama_context:  CUDA_Host compute buffer size = {_mib(buffers.host_compute)}",
        f"mask of {buffers.mask_cells:,} cells and embeddings of {buffers.step:,} tokens, in float32",
        f"{CONTEXT}; logs",
    )
    return (*lines, *(device if buffers.layers else []), host)


def _mib(size: int) -> str:
    return f"{size / MIB:8.2f} MiB"


def _longest(rank: Rank, settings: Settings, card: Card, buffers: Buffers) -> int:
    """Return the longest context with which the buffers fit the device."""
    low, high = 0, buffers.context
    while high - low > 256:
        middle = cells((low + high) // 2)
        fits = Buffers(rank, settings._replace(max_model_len=middle)).device <= (settings.free or card.memory)
        low, high = (middle, high) if fits and middle > low else (low, min(middle, high - 256))
    return low


def _notes(buffers: Buffers, settings: Settings) -> tuple[str, ...]:
    notes = []
    if settings.version is None:
        notes.append(f"assumed a CUDA build of about {BUILD}; later builds reserve other compute buffers")
    if settings.layers_fitted:
        notes.append(f"--gpu-layers auto leaves {MARGIN // MIB:,} MiB of the device free, as builds since b7400 do")
    else:
        notes.append("the CUDA context and what --fit would change are not counted")
    if buffers.first or settings.experts_on_host:
        notes.append("layers in the host's memory are slower: the bounds on speed take all at the device's bandwidth")
    if settings.speculative and settings.speculative != "ngram":
        notes.append("a draft model has a context and buffers of its own, which are not counted")
    return tuple(notes)


LLAMA_CPP = LlamaCpp()
