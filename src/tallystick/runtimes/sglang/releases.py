"""Releases of SGLang whose defaults differ: its static share, its step and its requests.

`ServerArgs` in `python/sglang/srt/server_args.py`, and from 0.5.12 on `handle_gpu_memory_settings`
in `python/sglang/srt/arg_groups/memory_hook.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from tallystick.runtimes.engine_versions import release_before

MIB = 2**20
NEWEST_JUDGED = "0.5.13"
ARGUMENTS = "python/sglang/srt/server_args.py"
HOOK = "python/sglang/srt/arg_groups/memory_hook.py"


class Step(NamedTuple):
    """Defaults for devices of some size."""

    below: int  # MiB of the device
    tokens: int  # --chunked-prefill-size
    graphs: int  # --cuda-graph-max-bs
    graphs_parallel: int  # the same of four tensor parallel ranks and more


class Release(NamedTuple):
    """Defaults from one release on, until the next in the table."""

    number: tuple[int, ...]
    steps: tuple[Step, ...]
    rule: str  # of the static share: "ranks", "table" or "parts"
    more_requests: int  # added to --max-running-requests, as chosen
    prefill_graphs: bool  # prefill is captured too, and its graphs are reserved
    logs_dtype: bool  # of the KV cache
    context: int  # bytes in use before the weights are loaded: CUDA, and what the process started
    windows: frozenset[str]  # types with a pool of their own for windowed layers (`is_hybrid_swa_model`)
    source: str


LARGE = 2**40
_LLAMA4 = frozenset({"llama4", "llama4_text"})
# `context` is of the logs of Llama-3.1-8B on an H100 of 79.22 GiB: 78.81 GiB were free in January
# 2025, 78.43 GiB in February 2026.
RELEASES = (
    Release(
        (0, 3), (Step(25_000, 2048, 8, 8), Step(LARGE, 8192, 160, 160)), "ranks", 1, False, False, 420 * MIB,
        frozenset(), ARGUMENTS,
    ),
    Release(
        (0, 4, 4), (Step(25_000, 2048, 8, 8), Step(LARGE, 8192, 160, 160)), "ranks", 0, False, False, 420 * MIB,
        frozenset(), ARGUMENTS,
    ),
    Release(
        (0, 4, 8),
        (Step(35 * 1024, 2048, 8, 8), Step(160 * 1024, 8192, 256, 256), Step(LARGE, 16384, 512, 512)),
        "table", 0, False, False, 420 * MIB, _LLAMA4, ARGUMENTS,
    ),
    Release(
        (0, 5, 3),
        (
            Step(20 * 1024, 2048, 8, 8), Step(35 * 1024, 2048, 24, 80), Step(60 * 1024, 4096, 32, 160),
            Step(160 * 1024, 8192, 256, 512), Step(LARGE, 16384, 512, 512),
        ),
        "parts", 0, False, False, 809 * MIB, _LLAMA4, ARGUMENTS,
    ),
    Release(
        (0, 5, 12),
        (
            Step(20 * 1024, 2048, 8, 8), Step(35 * 1024, 4096, 48, 160), Step(60 * 1024, 4096, 32, 160),
            Step(160 * 1024, 8192, 256, 512), Step(LARGE, 16384, 512, 512),
        ),
        "parts", 0, True, True, 809 * MIB, _LLAMA4 | {"gpt_oss", "gemma4", "gemma4_text"}, HOOK,
    ),
)  # fmt: skip

# Memory of a device in MiB as nvidia-smi shows it, which is more than a program sees.
CAPACITIES = {
    "t4": 15_360, "a10": 23_028, "a40": 46_068, "a6000": 49_140, "a100-40gb": 40_960, "a100-80gb": 81_920,
    "a100-80gb-pcie": 81_920, "l4": 23_034, "l40s": 46_068, "h100": 81_559, "h100-pcie": 81_559, "h200": 143_771,
    "b200": 183_359, "rtx3090": 24_576, "rtx4080": 16_376, "rtx4090": 24_564, "rtx5090": 32_607, "mi300x": 196_592,
}  # fmt: skip


def release_of(version: str | None) -> Release:
    """Return the defaults of a version, such as ``"0.5.13"`` or ``"v0.4.6.post2"``.

    Args:
        version: None is the newest that logs judge.

    Raises:
        BadInput: if it is not a version, or one before 0.3.
    """
    return release_before("SGLang", version or NEWEST_JUDGED, RELEASES, NEWEST_JUDGED)


class Asked(NamedTuple):
    """What the default share depends on."""

    size: int  # MiB of the device
    ranks: int  # tensor parallel ranks times pipeline stages
    tp: int
    dp: int  # of DP attention
    chunk: int  # tokens of a step
    graphs: int  # requests of the largest captured batch; 0 without CUDA graphs
    latent: bool  # the attention is MLA
    speculative: str  # method, or ""


def share(release: Release, asked: Asked) -> float:
    """Return the default of --mem-fraction-static."""
    if release.rule == "ranks":
        steps = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
        return next(value for least, value in steps if asked.tp >= least)
    if release.rule == "table":
        kept = _table(asked)
    else:
        kept = 512 + 1.5 * max(asked.chunk, 2048) + asked.ranks / 8 * 1024 + 2 * asked.graphs
        if release.prefill_graphs:
            kept += 1.5 * 1024 if asked.latent else 8 * prefill_graphs(asked.chunk)
        if asked.dp > 1:
            kept += asked.graphs * asked.dp * (4.5 if asked.graphs > 300 else 3)
        if asked.size > 60 * 1024:
            kept = max(kept, 10 * 1024)
    if release.rule == "table" or not release.prefill_graphs:
        kept += {"": 0, "ngram": 0, "draft_model": 6 * 1024}.get(asked.speculative, 2 * 1024)
    return round((asked.size - kept) / asked.size, 3)


def _table(asked: Asked) -> float:
    """Return the MiB that 0.4.8 to 0.5.2 leave outside of the static share."""
    steps = ((35 * 1024, 2.8, 10), (90 * 1024, 9.5, 2), (160 * 1024, 12, 2))
    found = next(((base, per) for below, base, per in steps if asked.size < below), None)
    kept = 32 * 1024 if found is None else (found[0] + asked.ranks / found[1]) * 1024
    return kept + (4 * 1024 if asked.dp > 1 else 0)


def prefill_graphs(tokens: int) -> int:
    """Return the graphs that are captured for prefill steps of up to `tokens`.

    `generate_prefill_cuda_graph_batch_sizes` in `python/sglang/srt/arg_groups/cuda_graph_hook.py`.

    >>> prefill_graphs(8192), prefill_graphs(16384)
    (58, 74)
    """
    sizes = [
        *range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32), *range(576, 1025, 64), *range(1280, 4097, 256),
        *range(4608, max(tokens, 4608) + 1, 512),
    ]  # fmt: skip
    return len([size for size in sizes if size <= tokens])
