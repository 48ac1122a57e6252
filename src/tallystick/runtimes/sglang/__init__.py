"""SGLang: its static share of a device, and the lines that it logs at its start.

It loads the weights, and gives the KV cache what is left of `mem_fraction_static` of the memory
that was free before. Activations and CUDA graphs live in the rest, which is not measured:
`profile_max_num_token` in `python/sglang/srt/model_executor/model_runner.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tallystick.runtimes.engines import GIB, MIB, Card, LogLine, Rank, Served, Settings
from tallystick.runtimes.vllm.profile import rotary_tables

VERSION = "0.5"
RUNNER, ARGUMENTS = "python/sglang/srt/model_executor/model_runner.py", "python/sglang/srt/server_args.py"
CACHES: dict[str, float | None] = {
    "auto": None, "bfloat16": 2, "float16": 2, "fp8_e5m2": 1, "fp8_e4m3": 1, "fp8": 1,
}  # fmt: skip
# Bytes in use before the weights are loaded: the CUDA context as vLLM 0.19 logs it on an H100, and
# with NCCL (jgchn/llm-d-planner).
CONTEXT, CONTEXT_PARALLEL = 522 * MIB, 1567 * MIB
PADDED_VOCABULARY = 64
PREFILL = 16384  # tokens, --max-prefill-tokens
FEWEST, MOST = 2048, 4096  # --max-running-requests, if not given
STATES = 0.9  # of recurrent layers for each part of the KV cache, --mamba-full-memory-ratio


class Step(NamedTuple):
    """Defaults for devices of some size (`_handle_gpu_memory_settings`)."""

    below: int  # MiB of the device
    tokens: int  # --chunked-prefill-size
    graphs: int  # --cuda-graph-max-bs
    graphs_parallel: int  # the same of four tensor parallel ranks and more


STEPS = (
    Step(20 * 1024, 2048, 8, 8),
    Step(35 * 1024, 2048, 24, 80),
    Step(60 * 1024, 4096, 32, 160),
    Step(160 * 1024, 8192, 256, 512),
    Step(2**40, 16384, 512, 512),
)


class Sglang:
    """The engine SGLang."""

    name = "sglang"
    padded_vocabulary = PADDED_VOCABULARY
    caches = CACHES
    strict = True

    def release_of(self, version: str | None) -> str:
        """Return the version that is planned."""
        return version or VERSION

    def loaded(self, rank: Rank, version: str | None, *, learned: bool) -> Rank:
        """Return a rank with its rotary tables, which are vLLM's."""
        return rank._replace(weights=rank.weights + rotary_tables(rank, learned=learned))

    def serve(self, ranks: Sequence[Rank], settings: Settings, card: Card) -> Served:
        """Plan the memory as SGLang does at its start."""
        plan = min((_Plan(rank, settings, card) for rank in ranks), key=lambda one: one.tokens)
        first = _Plan(ranks[0], settings, card)
        length = settings.max_model_len or 1
        error = ""
        if first.weights > first.free:
            error = "torch.OutOfMemoryError: CUDA out of memory."
        elif plan.tokens <= 0:
            error = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
        requests = settings.max_num_seqs or min(max(int(plan.tokens / length * 512), FEWEST), MOST)
        return Served(
            weights=first.weights,
            activations=first.reserved,
            other=card.memory - first.free,
            kv=first.pool,
            kv_per_token=first.per_token,
            kv_tokens=max(plan.tokens, 0),
            concurrency=max(plan.tokens, 0) / length,
            blocks=max(plan.tokens, 0),
            used={
                "max_num_seqs": requests,
                "max_num_batched_tokens": first.chunk,
                "gpu_memory_utilization": first.share,
                "block_size": plan.page,
            },
            lines=_lines(first, plan, requests, length, error),
            error=error,
            longest=max(min(plan.tokens, length), 0),
            limits=(f"KV cache: {plan.tokens / length:.2f} requests of {length:,} tokens",),
            notes=_notes(ranks[0], settings),
        )

    def per_request(self, ranks: Sequence[Rank], settings: Settings, card: Card, tokens: int) -> float:
        """Return how many requests of this length the pool holds at the same time."""
        return min(_Plan(rank, settings, card).tokens for rank in ranks) / tokens


class _Plan:
    """One device: what it holds, and its pool."""

    def __init__(self, rank: Rank, settings: Settings, card: Card) -> None:
        size = card.memory // MIB
        step = next(one for one in STEPS if size < one.below)
        self.chunk = settings.max_num_batched_tokens or step.tokens
        graphs = 0 if settings.eager else step.graphs_parallel if settings.tp >= 4 else step.graphs
        self.share = settings.memory_share or _share(size, self.chunk, graphs, settings.tp * settings.pp)
        self.free = card.memory - (CONTEXT_PARALLEL if settings.tp > 1 else CONTEXT)
        self.weights = rank.weights - settings.offload
        self.reserved = round(self.free * (1 - self.share))
        self.page = settings.block_size or 1
        left = self.free - self.weights - self.reserved
        self.pool = round(left / (1 + STATES)) if rank.recurring else left
        self.per_token = round(sum(int(one.layers) * int(one.heads.kept) for one in rank.attending) * settings.kv_width)
        tokens = self.pool // self.per_token if self.per_token else 0
        self.tokens = tokens // self.page * self.page


def _share(size: int, chunk: int, graphs: int, ranks: int) -> float:
    """Return the default of --mem-fraction-static for a device of `size` MiB."""
    reserved = 512 + 1.5 * max(chunk, 2048) + 2 * graphs + ranks / 8 * 1024
    if size > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    return round((size - reserved) / size, 3)


def _lines(first: _Plan, plan: _Plan, requests: int, length: int, error: str) -> tuple[LogLine, ...]:
    """Return the lines of the log that state memory; SGLang's GB are GiB."""
    end = (LogLine(error, "", RUNNER),) if error else ()
    if error.startswith("torch."):
        return end
    loaded = first.free - first.weights
    weights = LogLine(
        f"Load weight end. avail mem={loaded / GIB:.2f} GB, mem usage={first.weights / GIB:.2f} GB.",
        f"{first.weights:,} B: weights and rotary tables",
        RUNNER,
    )
    if error:
        return (weights, *end)
    half = plan.tokens * plan.per_token / 2 / GIB
    return (
        weights,
        LogLine(
            f"KV Cache is allocated. #tokens: {plan.tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB",
            f"({loaded:,} B left - {first.reserved:,} B outside of the static share {first.share:g})"
            f" / {plan.per_token:,} B a token",
            RUNNER,
        ),
        LogLine(
            f"max_total_num_tokens={plan.tokens}, chunked_prefill_size={first.chunk}, max_prefill_tokens={PREFILL},"
            f" max_running_requests={requests}, context_len={length}",
            f"requests: tokens / context × 512, from {FEWEST:,} to {MOST:,}",
            ARGUMENTS,
        ),
    )


def _notes(rank: Rank, settings: Settings) -> tuple[str, ...]:
    notes = ["SGLang's memory before the weights is taken from vLLM's logs on H100; few public logs judge it"]
    if settings.version is None:
        notes.insert(0, f"assumed SGLang {VERSION}; change it with --engine-version")
    if any(window is not None for one in rank.attending for window in one.windows()):
        notes.append("windows are counted at full length; SGLang's hybrid pools hold more tokens")
    if rank.recurring:
        notes.append("recurrent states get 0.9 parts for each part of the KV cache; they are not planned further")
    if any(one.heads.latent is not None for one in rank.attending):
        notes.append("the latent KV cache is one buffer; its line has no K and V")
    return tuple(notes)


SGLANG = Sglang()
