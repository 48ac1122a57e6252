"""What vLLM measures at its start: weights as loaded, and the peak of its profile run.

The profile run (`profile_run` and `_dummy_sampler_run` in `vllm/v1/worker/gpu_model_runner.py`)
passes as many tokens as a step may have, then samples for as many requests as may run. Its peak is
in the larger of the two.
"""

from __future__ import annotations

from tallystick.core.anatomy import Attending, Heads
from tallystick.runtimes.engines import Rank
from tallystick.runtimes.vllm.versions import Release

PADDED_VOCABULARY = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py, DEFAULT_VOCAB_PADDING_SIZE

# Hidden states alive next to an MLP's tensors while the compiled layers run, of Llama-3.1-8B's
# pipeline stages on 0.19 (1.05 GiB). A stage keeps two more, which it receives.
ALIVE = 4.25
RECEIVED = 2
ALIVE_V0 = 3  # uncompiled: of Llama-3.1-8B on 0.6, steps of 20,000 and of 29,000 tokens

WINDOWED = ("gemma3", "gemma3_text")  # types whose windowed layers have another base
WHOLE = ("gpt_oss", "llama4", "llama4_text")  # types whose heads are rotated in pairs, and whole

# A step's tokens in an expert kernel come in two buffers that stay allocated
# (vllm/model_executor/layers/fused_moe/fused_moe.py, TritonExperts.workspace_shapes).


def rotary_tables(rank: Rank, *, learned: bool) -> int:
    """Return the bytes of the rotary tables, which the line of the loaded model includes.

    A table has cosines and sines of all positions that the config states, and as many times more as
    it scales them (`_compute_cos_sin_cache` in `vllm/model_executor/layers/rotary_embedding/`).
    Layers of equal sizes share one.

    Args:
        rank: one device's shard.
        learned: the model has learned positions, and so no table.
    """
    if rank.positions is None or learned:
        return 0
    sizes = {_rotated(rank, one.heads) for one in rank.attending}
    tables = sum(sizes) * rank.positions * rank.width
    if rank.architecture in WINDOWED:  # windowed layers are not scaled, and have a table of their own
        return round(tables * (rank.stretch + 1))
    return round(tables * rank.stretch)


def _rotated(rank: Rank, heads: Heads) -> int:
    if heads.rotary is None or rank.architecture in WHOLE:
        return int(heads.size)
    return int(heads.rotary)


def absorbed(attending: tuple[Attending, ...], width: int) -> int:
    """Return the bytes of MLA's absorbed matrices, copies of `kv_b_proj` in the attention's layout.

    `process_weights_after_loading` in `vllm/model_executor/layers/attention/mla_attention.py`.
    """
    total = 0
    for one in attending:
        heads = one.heads
        if heads.latent is None:
            continue
        rank, rotary = int(heads.latent) - int(heads.rotary or 0), int(heads.rotary or 0)
        total += (
            int(one.layers) * rank * int(heads.queries) * (int(heads.size) - rotary + int(heads.value_size)) * width
        )
    return total


def padding(rank: Rank, release: Release) -> int:
    """Return the bytes that MXFP4 kernels add to the experts: both sizes are padded for tiles.

    `Mxfp4MoEMethod.create_weights` in `vllm/model_executor/layers/quantization/mxfp4.py`.
    """
    if rank.experts is None or not rank.experts.packed:
        return 0
    _, inner, reads, packed = rank.experts
    wide, tall = (-(-size // step) * step for size, step in zip((inner, reads), release.tiles, strict=True))
    return packed * wide * tall // (inner * reads) - packed


def workspaces(rank: Rank, tokens: int) -> int:
    """Return the bytes of the experts' two buffers, for a step of `tokens`."""
    if rank.experts is None or rank.experts.packed:
        return 0
    used, inner, reads, _ = rank.experts
    return tokens * used * (max(inner, reads) + max(2 * inner, reads)) * rank.width


def forward(rank: Rank, tokens: int, *, staged: bool, v0: bool = False) -> int:
    """Return the peak bytes of the layers, without weights.

    Args:
        rank: one device's shard.
        tokens: of the step.
        staged: the model is split into pipeline stages.
        v0: the engine is V0, which compiles nothing.
    """
    states = (ALIVE_V0 if v0 else ALIVE) + (RECEIVED if staged else 0)
    wide = (3 if rank.gated else 2) * rank.inner if rank.experts is None else rank.hidden
    return round(tokens * rank.width * (wide + states * rank.hidden)) + workspaces(rank, tokens)


def sampler(rank: Rank, tokens: int, requests: int, release: Release, *, v0: bool = False) -> int:
    """Return the peak bytes of the sampler; 0 on a stage without the head. V0 keeps its input."""
    if not rank.last:
        return 0
    per_logit = release.per_logit + rank.width - 2
    logits = round(requests * rank.vocabulary * per_logit)
    hidden = max(release.hidden, int(v0))
    return logits + hidden * tokens * rank.hidden * rank.width + workspaces(rank, tokens)
