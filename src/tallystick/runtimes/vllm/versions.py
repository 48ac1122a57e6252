"""Releases of vLLM whose memory differs, and the constants of each, with their sources.

Constants are read from the logs of Llama-3.1-8B, for releases up to 0.18 of Qwen3-14B, and for
MXFP4 of gpt-oss-20b. All other rows judge them: `tests/runtimes/vllm_logs.csv`.
"""

from __future__ import annotations

from typing import NamedTuple

from tallystick.runtimes.engine_versions import release_before

MIB = 2**20

LOGS = "jgchn/llm-d-planner accuracy/results at 30ec05f, H100 80 GB"


class Release(NamedTuple):
    """Constants from one release on, until the next in the table."""

    number: tuple[int, ...]
    per_logit: float  # bytes of a logit while the sampler runs; for float32 models 2 more
    hidden: int  # hidden states of all batched tokens, alive at the same time
    outside: int  # bytes that the profile run adds outside of torch, on one device
    outside_parallel: tuple[int, int]  # the same of two, and of four or more tensor parallel ranks linked by NVLink
    outside_pipeline: int  # the same of a pipeline stage
    context: int  # bytes in use before vLLM measures the free memory
    memory_share: float  # default of --gpu-memory-utilization
    graphs: bool  # an estimate of CUDA graphs is subtracted; otherwise they are captured outside of the budget
    tiles: tuple[int, int]  # multiples to which MXFP4 experts' intermediate and hidden sizes are padded
    tokens_by_concurrency: bool  # how the line of the pool's tokens is computed
    source: str
    whole_prompts: bool = False  # engine V0: a step processes whole prompts, never parts of one

    @property
    def version(self) -> str:
        """The first version with these constants."""
        return ".".join(map(str, self.number))


# `per_logit` from 0.17 on is reasoned: a logit in 16 bits, and three tensors of it in float32
# (logits, probabilities, noise of the sampler). The releases before sort it: 38.92 B, a figure.
# V0 and V1 until 0.10 sort logits as 0.11 does: a log of Llama-3.1-8B on 0.6 agrees (1.19 GiB).
RELEASES = (
    Release(
        (0, 6), 38.92, 0, 358 * MIB, (788 * MIB, 788 * MIB), 297 * MIB, 522 * MIB, 0.9, False, (256, 1), False,
        "as 0.6.5, but the CUDA context is subtracted (vllm-project/vllm#10511): Llama-3.1-8B on an RTX 3090, #10517",
        True,
    ),
    Release(
        (0, 6, 5), 38.92, 0, 133 * MIB, (563 * MIB, 563 * MIB), 72 * MIB, 522 * MIB, 0.9, False, (256, 1), False,
        f"as 0.11 ({LOGS})", True,
    ),
    Release(
        (0, 8), 38.92, 0, 133 * MIB, (563 * MIB, 563 * MIB), 72 * MIB, 522 * MIB, 0.9, False, (256, 1), False,
        f"as 0.11 ({LOGS})",
    ),
    Release(
        (0, 11), 38.92, 0, 133 * MIB, (563 * MIB, 563 * MIB), 72 * MIB, 522 * MIB, 0.9, False, (256, 1), False,
        f"Qwen3-14B on 0.15 and 0.16, {LOGS}; of two ranks llm-d-benchmark config_explorer at 2593348",
    ),
    Release(
        (0, 17), 14, 3, 133 * MIB, (563 * MIB, 563 * MIB), 72 * MIB, 522 * MIB, 0.9, False, (256, 1), False,
        f"Qwen3-14B on 0.17, {LOGS}",
    ),
    Release(
        (0, 18), 14, 3, 256 * MIB, (2120 * MIB, 2181 * MIB), 72 * MIB, 522 * MIB, 0.9, False, (128, 256), False,
        f"Llama-3.1-8B on 0.19, {LOGS}",
    ),
    Release(
        (0, 21), 14, 3, 256 * MIB, (2120 * MIB, 2181 * MIB), 72 * MIB, 522 * MIB, 0.92, True, (128, 256), True,
        f"as 0.19; CUDA graphs are subtracted (vllm-project/vllm#45178), {LOGS}",
    ),
)  # fmt: skip
NEWEST_JUDGED = "0.19"  # the newest release with rows that judge it


def release_of(version: str | None) -> Release:
    """Return the constants of a version, such as ``"0.19"`` or ``"v0.19.0"``; None is 0.19.

    Raises:
        BadInput: if it is not a version, or one before 0.6.
    """
    return release_before("vLLM", version or NEWEST_JUDGED, RELEASES, NEWEST_JUDGED)
