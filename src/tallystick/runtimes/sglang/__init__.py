"""SGLang: its static share of a device, and the lines that it logs at its start.

It loads the weights, and gives the KV cache what is left of `mem_fraction_static` of the memory
that was free before. Activations and CUDA graphs live in the rest, which is not measured:
``rest_memory`` in `_profile_available_bytes` (`profile_max_num_token` until 0.5.9).
"""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.runtimes.engines import GIB, MIB, Card, LogLine, Rank, Served, Settings
from tallystick.runtimes.sglang.pools import SLOTS, Pools, Token, pools_of, state_of, token_of
from tallystick.runtimes.sglang.releases import CAPACITIES, NEWEST_JUDGED, Asked, release_of, share
from tallystick.runtimes.vllm.profile import absorbed, rotary_tables

RUNNER = "python/sglang/srt/model_executor/model_runner.py"
POOLS = "python/sglang/srt/model_executor/pool_configurator.py"
CACHES: dict[str, float | None] = {
    "auto": None, "bfloat16": 2, "float16": 2, "fp8_e5m2": 1, "fp8_e4m3": 1, "fp8": 1,
}  # fmt: skip
# Bytes that tensor parallel ranks add before the weights are loaded: NCCL, and over NVLink the
# buffers of custom all-reduce. Over NVLink of Qwen3-235B on four H100 (vllm-project/vllm#21348);
# without it reasoned.
PARALLEL, PARALLEL_NVLINK = 60 * MIB, 1550 * MIB
NVLINK = 70 * GIB  # devices of at least this memory are taken to have it
PADDED_VOCABULARY = 64
PREFILL = 16384  # tokens, --max-prefill-tokens
FEWEST, MOST = 2048, 4096  # --max-running-requests, if not given
SCALED = 4  # bytes of an element of the rotary tables, which are kept in float32
WORDS = {1.0: "float8_e4m3fn", 2.0: "bfloat16", 4.0: "float32"}


class Sglang:
    """The engine SGLang."""

    name = "sglang"
    padded_vocabulary = PADDED_VOCABULARY
    caches = CACHES
    images: tuple[str, ...] = ()
    strict = True

    def release_of(self, version: str | None) -> str:
        """Return the version that is planned."""
        release_of(version)
        return version or NEWEST_JUDGED

    def loaded(self, rank: Rank, version: str | None, *, learned: bool) -> Rank:
        """Return a rank with what its load allocates, with rotary tables and absorbed matrices."""
        tables = rotary_tables(rank._replace(width=SCALED), learned=learned)
        more = tables + absorbed(rank.attending, rank.width)
        return rank._replace(weights=(rank.reserved or rank.weights) + more)

    def serve(self, ranks: Sequence[Rank], settings: Settings, card: Card) -> Served:
        """Plan the memory as SGLang does at its start."""
        plans = [_Plan(rank, settings, card) for rank in ranks]
        plan, first = min(plans, key=lambda one: one.pools.tokens), plans[0]
        length = settings.max_model_len or 1
        error = _error(first, plan)
        requests = plan.requests(settings, length)
        tokens = max(plan.pools.tokens, 0)
        return Served(
            weights=first.weights,
            activations=first.kept,
            other=first.used,
            kv=first.kv,
            kv_per_token=round(first.token.whole + first.token.windowed),
            kv_tokens=tokens,
            concurrency=tokens / length,
            blocks=tokens,
            used={
                "max_num_seqs": requests,
                "max_num_batched_tokens": first.chunk,
                "gpu_memory_utilization": first.share,
                "block_size": plan.page,
            },
            lines=_lines(first, plan, requests, length, error),
            error=error,
            longest=max(min(tokens, length), 0),
            limits=(f"KV cache: {tokens / length:.2f} requests of {length:,} tokens",),
            notes=_notes(ranks[0], settings, first),
        )

    def per_request(self, ranks: Sequence[Rank], settings: Settings, card: Card, tokens: int) -> float:
        """Return how many requests of this length the pool holds at the same time."""
        plan = min((_Plan(rank, settings, card) for rank in ranks), key=lambda one: one.pools.tokens)
        held = plan.pools.tokens / tokens
        return min(held, plan.pools.states // SLOTS) if plan.pools.states else held


class _Plan:
    """One device: what it holds, and its pools."""

    def __init__(self, rank: Rank, settings: Settings, card: Card) -> None:
        self.release = release_of(settings.version)
        size = CAPACITIES.get(card.name.lower(), card.memory // MIB)
        step = next(one for one in self.release.steps if size < one.below)
        self.chunk = settings.max_num_batched_tokens or step.tokens
        graphs = 0 if settings.eager else step.graphs_parallel if settings.tp >= 4 else step.graphs
        latent = any(one.heads.latent is not None for one in rank.attending)
        asked = Asked(
            size, settings.tp * settings.pp, settings.tp, settings.dp, self.chunk, graphs, latent, settings.speculative
        )
        self.share = settings.memory_share or share(self.release, asked)
        parallel = 0 if settings.tp == 1 else PARALLEL_NVLINK if card.memory >= NVLINK else PARALLEL
        self.free = settings.free or card.memory - self.release.context - parallel
        self.used = card.memory - self.free
        self.weights = rank.weights - settings.offload
        self.kept = round(self.free * (1 - self.share))
        drafted = rank.draft.weights if rank.draft is not None else 0
        self.left = self.free - self.weights
        self.more = rank.adapters + drafted  # loaded after the weights, and before the pools
        self.page = settings.block_size or 1
        self.token: Token = token_of(rank, settings, card, self.release.windows)
        self.state = state_of(rank)
        self.pools: Pools = pools_of(self.left - self.more - self.kept, self.token, self.state, settings, self.page)
        self.kv = round(self.pools.tokens * self.token.whole + self.pools.windowed * self.token.windowed)
        self.dtype = WORDS.get(settings.kv_width, "bfloat16")

    def requests(self, settings: Settings, length: int) -> int:
        """Return the most requests that run at the same time."""
        chosen = min(max(int(self.pools.tokens / length * 512), FEWEST), MOST) + self.release.more_requests
        most = settings.max_num_seqs or chosen
        return min(most, self.pools.states // SLOTS) if self.state else most


def _error(first: _Plan, plan: _Plan) -> str:
    if first.weights > first.free:
        return "torch.OutOfMemoryError: CUDA out of memory."
    if plan.pools.tokens <= 0:
        return "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    return ""


def _lines(first: _Plan, plan: _Plan, requests: int, length: int, error: str) -> tuple[LogLine, ...]:
    """Return the lines of the log that state memory; SGLang's GB are GiB."""
    end = (LogLine(error, "", POOLS),) if error else ()
    if error.startswith("torch."):
        return end
    weights = LogLine(
        f"Load weight end. avail mem={first.left / GIB:.2f} GB, mem usage={first.weights / GIB:.2f} GB.",
        f"{first.weights:,} B: weights in the segments of torch's allocator, and rotary tables in float32",
        RUNNER,
    )
    if error:
        return (weights, *end)
    return (weights, *_of_pools(first, plan), _summary(first, plan, requests, length))


def _of_pools(first: _Plan, plan: _Plan) -> list[LogLine]:
    """Return the lines of the pools."""
    tokens, token, pools = plan.pools.tokens, plan.token, plan.pools
    lines = []
    if plan.state:
        lines.append(
            LogLine(
                f"Mamba Cache is allocated. max_mamba_cache_size: {pools.states}",
                f"{pools.states_bytes:,} B: {pools.states + 1:,} slots of {plan.state:,} B",
                POOLS,
            )
        )
    if token.windowed:
        lines.append(
            LogLine(
                f"Use sliding window memory pool. full_layer_tokens={pools.tokens}, swa_layer_tokens={pools.windowed}",
                f"{token.whole:,.0f} B a token in layers without a window, {token.windowed:,.0f} B in the others",
                POOLS,
            )
        )
    dtype = f"dtype: torch.{plan.dtype}, " if plan.release.logs_dtype else ""
    sizes = [("KV" if token.latent else "K", token.keys), *([] if token.latent else [("V", token.values)])]
    said = ", ".join(f"{name} size: {tokens * each / GIB:.2f} GB" for name, each in sizes)
    lines.append(
        LogLine(
            f"KV Cache is allocated. {dtype}#tokens: {tokens}, {said}",
            f"({first.left:,} B left - {first.kept:,} B outside of the static share {first.share:g})"
            f" / {token.whole:,.0f} B a token",
            POOLS,
        )
    )
    return lines


def _summary(first: _Plan, plan: _Plan, requests: int, length: int) -> LogLine:
    return LogLine(
        f"max_total_num_tokens={plan.pools.tokens}, chunked_prefill_size={first.chunk},"
        f" max_prefill_tokens={PREFILL}, max_running_requests={requests}, context_len={length}",
        f"requests: tokens / context × 512, from {FEWEST:,} to {MOST:,}",
        plan.release.source,
    )


def _notes(rank: Rank, settings: Settings, plan: _Plan) -> tuple[str, ...]:
    notes = []
    if settings.version is None:
        notes.append(f"assumed SGLang {NEWEST_JUDGED}; change it with --engine-version")
    if settings.free is None:
        notes.append("memory in use before the weights: as on an H100; set what is free with --free-memory")
    windows = any(window is not None for one in rank.attending for window in one.windows())
    if windows and not plan.token.windowed:
        notes.append("layers with a sliding window keep every token")
    if rank.recurring:
        notes.append(f"each running request takes {SLOTS} slots of recurrent states")
    return tuple(notes)


SGLANG = Sglang()
