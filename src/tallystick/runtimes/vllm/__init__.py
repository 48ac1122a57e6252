"""vLLM: what it holds on each device, and the lines that it logs at its start.

It loads the weights, measures the peak of a profile run, and gives the rest of its share of the
device to the KV cache: ``requested_memory - non_kv_cache_memory`` in `determine_available_memory`
(`vllm/v1/worker/gpu_worker.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.runtimes.engines import GIB, Card, LogLine, Rank, Served, Settings
from tallystick.runtimes.vllm import encoder, profile
from tallystick.runtimes.vllm.cuda_graphs import captured
from tallystick.runtimes.vllm.pages import BLOCK, UTILS, Kind, Pool, kinds_of, pool_of
from tallystick.runtimes.vllm.states import state_bytes, states_of_request
from tallystick.runtimes.vllm.versions import NEWEST_JUDGED, Release, release_of

WORKER = "vllm/v1/worker/gpu_worker.py"
LARGE = 70 * GIB  # devices of at least this memory, A100 excepted, get the larger defaults
INTERFACE = "vllm/platforms/interface.py _align_hybrid_block_size"
DEFAULTS = "vllm/engine/arg_utils.py get_batch_defaults"
# Formats of --kv-cache-dtype, and bytes of an element; None is the model's dtype.
CACHES: dict[str, float | None] = {
    "auto": None, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "float32": 4,
}  # fmt: skip
OLDER_CARDS = ("t4", "v100-16gb", "v100-32gb")  # below compute capability 8: V0 until it was removed
V0_REMOVED = (0, 11)
CHUNKED = 32_768  # V0 splits prompts of models with longer requests (`EngineArgs.create_engine_config`)
LINKED = ("a100", "h100", "h200", "b200", "b300", "gb200", "v100")  # names of cards with NVLink, as a rule


class Vllm:
    """The engine vLLM."""

    name = "vllm"
    padded_vocabulary = profile.PADDED_VOCABULARY
    caches = CACHES
    images = encoder.RULED
    strict = True

    def release_of(self, version: str | None) -> str:
        """Return the release whose constants serve a version."""
        return version or NEWEST_JUDGED if release_of(version) else ""

    def loaded(self, rank: Rank, version: str | None, *, learned: bool) -> Rank:
        """Return a rank with rotary tables, MLA's absorbed matrices, and padded MXFP4 experts."""
        more = profile.rotary_tables(rank, learned=learned)
        more += profile.absorbed(rank.attending, rank.width) + profile.padding(rank, release_of(version))
        return rank._replace(weights=rank.weights + more)

    def serve(self, ranks: Sequence[Rank], settings: Settings, card: Card) -> Served:
        """Plan the memory as vLLM does at its start."""
        release, used = release_of(settings.version), defaults(settings, card)
        plans = [_Plan(rank, settings, card, release, used) for rank in ranks]
        first, least = plans[0], min(plans, key=lambda plan: plan.blocks)
        length = settings.max_model_len or 0
        needed = least.pool.needed(length, used["max_num_batched_tokens"]) if least.pool else 1
        tokens = least.tokens(length)
        answer = Served(
            weights=first.weights,
            activations=first.activations,
            other=first.other,
            kv=first.available,
            kv_per_token=first.per_token,
            kv_tokens=tokens,
            concurrency=least.blocks / needed if least.pool else float(used["max_num_seqs"]),
            blocks=least.blocks,
            used={**used, "block_size": first.block},
            lines=(),
        )
        error, longest = _error(plans, least, settings, card, release, needed)
        return answer._replace(
            lines=_lines(first, least, answer, settings, release, error),
            error=error,
            longest=longest,
            limits=_limits(first, least, answer, settings),
            notes=_notes(first, settings, release),
        )

    def per_request(self, ranks: Sequence[Rank], settings: Settings, card: Card, tokens: int) -> float:
        """Return how many requests of this length the pool holds at the same time."""
        release, used = release_of(settings.version), defaults(settings, card)
        plans = [_Plan(rank, settings, card, release, used) for rank in ranks]
        least = min(plans, key=lambda plan: plan.blocks)
        if least.pool is None:
            return float(used["max_num_seqs"])
        return least.blocks / least.pool.needed(tokens, used["max_num_batched_tokens"])


def defaults(settings: Settings, card: Card) -> dict[str, int]:
    """Return the two sizes of a step, with vLLM's defaults for an API server."""
    large = card.memory >= LARGE and "a100" not in card.name.lower()
    if is_v0(settings, card):
        length = settings.max_model_len or 0
        step = settings.max_num_batched_tokens or (2048 if length > CHUNKED else max(length, 2048))
        return {"max_num_batched_tokens": step, "max_num_seqs": min(settings.max_num_seqs or 256, step)}
    batched = settings.max_num_batched_tokens or (8192 if large else 2048)
    requests = settings.max_num_seqs or (1024 if large else 256)
    return {"max_num_batched_tokens": batched, "max_num_seqs": min(requests, batched)}


def is_v0(settings: Settings, card: Card) -> bool:
    """Return whether the engine is V0, whose steps hold whole prompts."""
    release = release_of(settings.version)
    return release.whole_prompts or (release.number < V0_REMOVED and card.name.lower() in OLDER_CARDS)


class _Plan:
    """One device: what it holds, and its pool."""

    def __init__(self, rank: Rank, settings: Settings, card: Card, release: Release, used: dict[str, int]) -> None:
        batched, requests = used["max_num_batched_tokens"], used["max_num_seqs"]
        self.rank, self.release, self.batched = rank, release, batched
        self.block = settings.block_size or BLOCK
        drafted = rank.draft.weights if rank.draft is not None else 0
        self.weights = rank.weights + rank.adapters + drafted - settings.offload
        peaks = _peaks(rank, settings, card, release, used)
        self.peak = max(peaks, key=lambda name: peaks[name])
        self.activations = peaks[self.peak]
        self.captured = captured(requests)
        self.graphs = self.captured.estimate if release.graphs and not settings.eager else 0
        self.outside = outside(settings, release, card)
        self.share = settings.memory_share or release.memory_share
        self.requested = int(card.memory * self.share)
        left = self.requested - self.weights - self.activations - self.other
        self.available = left if settings.kv_bytes is None else settings.kv_bytes
        kinds = kinds_of(
            (*rank.attending, *(rank.draft.attending if rank.draft is not None else ())),
            rank.recurring,
            width=settings.kv_width,
            states=[state_bytes(run.keeps, rank, settings) for run in rank.recurring],
            states_of_request=states_of_request(settings),
            block=self.block,
            hybrid=settings.hybrid,
        )
        self.pool: Pool | None = pool_of(kinds)
        self.kinds: list[Kind] = kinds
        self.blocks = self._blocks(settings)
        if self.pool is not None:
            self.block = min((one.block for one in self.pool.groups if one.token), default=self.block)
        self.per_token = sum(kind.layers * kind.token for kind in kinds)

    @property
    def other(self) -> int:
        return self.outside + self.graphs

    def _blocks(self, settings: Settings) -> int:
        """Return the pages of the pool; an override takes the memory that its pages need."""
        if self.pool is None:
            return 0
        if settings.blocks is None:
            return self.pool.blocks(self.available)
        self.available = settings.blocks * self.pool.block_bytes
        return settings.blocks

    def tokens(self, length: int) -> int:
        if self.pool is None:
            return 0
        return self.pool.tokens(self.blocks, length, self.batched, by_concurrency=self.release.tokens_by_concurrency)

    def needed_bytes(self, length: int) -> int:
        if self.pool is None:
            return 0
        return self.pool.needed(length, self.batched) * self.pool.block_bytes

    def longest(self, most: int) -> int:
        """Return the longest request that the pool holds, as vLLM's error states it."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.needed_bytes(middle) <= self.available:
                low = middle
            else:
                high = middle - 1
        return low


def _peaks(rank: Rank, settings: Settings, card: Card, release: Release, used: dict[str, int]) -> dict[str, int]:
    """Return the bytes at each peak of the profile run, without weights."""
    batched, v0 = used["max_num_batched_tokens"], is_v0(settings, card)
    peaks = {
        "profile run": profile.forward(rank, batched, staged=settings.pp > 1, v0=v0),
        "sampler": profile.sampler(rank, batched, used["max_num_seqs"], release, v0=v0),
    }
    images = encoder.profiled(rank, batched, settings.tp) if settings.towers and not v0 else None
    if images is None:
        return peaks
    return {**{name: size + images.kept for name, size in peaks.items()}, "vision tower": images.peak}


def outside(settings: Settings, release: Release, card: Card) -> int:
    """Return the bytes that the profile run adds outside of torch: NCCL's buffers and kernels.

    Ranks without NVLink add no more than one device: 0.09 to 0.2 GiB in logs of RTX 3090, L40S.
    """
    linked = card.memory >= LARGE or card.name.lower().startswith(LINKED)
    if settings.tp > 1 and linked:
        return release.outside_parallel[0 if settings.tp == 2 else 1]
    return release.outside_pipeline if settings.pp > 1 and settings.tp == 1 else release.outside


def _error(
    plans: Sequence[_Plan], least: _Plan, settings: Settings, card: Card, release: Release, needed: int
) -> tuple[str, int]:
    """Return the error that ends the start, as vLLM words it, and the longest request that fits."""
    length = settings.max_model_len or 0
    longest = min(plan.longest(length) for plan in plans)
    free = settings.free or card.memory - release.context
    if plans[0].requested > free and settings.kv_bytes is None:
        share = f"({plans[0].share:g}, {plans[0].requested / GIB:.2f} GiB)"
        return (
            f"ValueError: Free memory on device ({free / GIB:.2f}/{card.memory / GIB:.2f} GiB) on startup is less"
            f" than desired GPU memory utilization {share}."
        ), longest
    if max(plan.weights for plan in plans) > free:
        return "torch.OutOfMemoryError: CUDA out of memory.", 0
    worst = min(plan.available for plan in plans)
    if worst <= 0 and least.pool is not None:
        return "ValueError: No available memory for the cache blocks.", 0
    short = next((plan for plan in plans if plan.needed_bytes(length) > plan.available), None)
    if short is not None:
        return (
            f"ValueError: To serve at least one request with the models's max seq len ({length}),"
            f" ({short.needed_bytes(length) / GIB:.2f} GiB KV cache is needed, which is larger than the available"
            f" KV cache memory ({short.available / GIB:.2f} GiB). Based on the available memory, the estimated"
            f" maximum model length is {longest}."
        ), longest
    return "", longest


def _lines(
    first: _Plan, least: _Plan, answer: Served, settings: Settings, release: Release, error: str
) -> tuple[LogLine, ...]:
    """Return the lines of the log that state memory, as far as the start comes."""
    if error.startswith(("torch.", "ValueError: Free")):
        return (LogLine(error, "", WORKER),)
    gib = f"{first.weights / GIB:.2f} GiB memory"
    lines = [LogLine(f"Model loading took {gib}", f"{first.weights:,} B: {_loaded(first.rank)}", WORKER)]
    if first.graphs:
        lines.append(
            LogLine(
                f"Estimated CUDA graph memory: {first.graphs / GIB:.2f} GiB total",
                f"{first.captured.piecewise} piecewise and {first.captured.full} full graphs",
                "vllm/v1/worker/gpu_model_runner.py profile_cudagraph_memory",
            )
        )
    if any(kind.state for kind in first.kinds) and any(kind.token for kind in first.kinds):
        block = f"Setting attention block size to {first.block} tokens"
        lines.append(LogLine(block, "an attention page is at least as large as a recurrent state", INTERFACE))
    if settings.kv_bytes is None and settings.blocks is None:
        formula = (
            f"{first.requested:,} B ({first.share:g} of the device) - {first.weights:,} B of weights"
            f" - {first.activations:,} B at the peak of the {first.peak} - {first.other:,} B outside of torch"
        )
        lines.append(
            LogLine(
                f"Available KV cache memory: {first.available / GIB:.2f} GiB", formula, f"{WORKER}; {release.source}"
            )
        )
    if error:
        return (*lines, LogLine(error, "", UTILS))
    if least.pool is None:
        return tuple(lines)
    length = settings.max_model_len or 0
    size = f"{least.blocks:,} pages of {least.pool.block_bytes:,} B"
    groups = 1 if least.pool.uniform else len(least.pool.groups)
    return (
        *lines,
        LogLine(
            f"GPU KV cache size: {answer.kv_tokens:,} tokens",
            f"{size} in {groups} groups of {least.pool.size} layers",
            UTILS,
        ),
        LogLine(
            f"Maximum concurrency for {length:,} tokens per request: {answer.concurrency:.2f}x",
            f"{least.blocks:,} pages / {least.pool.needed(length, least.batched):,} of a request",
            UTILS,
        ),
    )


def _loaded(rank: Rank) -> str:
    """Return what the loaded bytes are, in words."""
    parts = ["weights and rotary tables"]
    if rank.draft is not None:
        parts.append(f"{rank.draft.weights:,} B of the draft ({rank.draft.method})")
    if rank.adapters:
        parts.append(f"{rank.adapters:,} B of slots for LoRA adapters")
    return ", ".join(parts)


def _limits(first: _Plan, least: _Plan, answer: Served, settings: Settings) -> tuple[str, ...]:
    """Return what bounds the number of requests, in words."""
    most = answer.used["max_num_seqs"]
    length = settings.max_model_len or 0
    if least.pool is None:
        return (f"max-num-seqs: {most:,} requests (no KV cache)",)
    if answer.concurrency < float(most):
        return (f"KV cache: {answer.concurrency:.2f} requests of {length:,} tokens",)
    return (f"max-num-seqs: {most:,} requests",)


def _notes(first: _Plan, settings: Settings, release: Release) -> tuple[str, ...]:
    notes = []
    if settings.version is None:
        notes.append(f"assumed vLLM {NEWEST_JUDGED}; change it with --engine-version")
    if release.graphs:
        notes.append("vLLM 0.21 and later subtract an estimate of CUDA graphs, which is known to ±0.2 GiB")
    if not release.graphs and not settings.eager:
        notes.append("CUDA graphs (0.5 to 1.9 GiB) are captured after the KV cache, outside of the budget")
    if settings.tp > 4:
        notes.append("memory outside of torch is known for up to 4 tensor-parallel ranks")
    if settings.dp > 1:
        notes.append(f"each of {settings.dp} data-parallel replicas has this pool; experts are divided between them")
    if any(kind.state for kind in first.kinds):
        pages = states_of_request(settings)
        notes.append(f"recurrent states: {pages} page{'s' * (pages > 1)} per request in each group")
    return tuple(notes)


VLLM = Vllm()
