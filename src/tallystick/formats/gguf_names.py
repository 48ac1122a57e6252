"""Map ggml's tensor names and metadata keys to roles, buffers, experts and ties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tallystick.core.tensor_names import LONGEST_NAME

EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"

# The first matching rule decides. Norms inside attention are norms; shared experts are MLPs.
_RULES = tuple(
    (role, re.compile(pattern))
    for role, pattern in (
        ("norm", r"norm\w*(\.\d+)?\.(weight|bias)$|(^|\.)(ln\d|ln_\w+|pre_ln|post_ln)\.|time_mix_ln"),
        ("head", r"^output\.|shared_head_head"),
        ("token_embedding", r"(^|\.)(token_embd|token_types|per_layer_token_embd|embed_tokens)\."),
        ("position_embedding", r"(^|\.)(position_embd|pos_embd)\."),
        ("router", r"ffn_gate_inp|exp_probs_b\."),
        ("mlp", r"_shexp\."),
        ("experts", r"_(ch)?exps\."),
        ("conv", r"conv"),
        ("ssm", r"\.(ssm_\w+|time_mix_\w+|channel_mix_\w+)"),
        ("attention", r"attn|(^|\.)indexer\."),
        ("mlp", r"\.(ffn\w*|vis_(down|gate|up))(\.|$)"),
    )
)

# Not trained: rotary factors, computed by the converter, and biases that balance the experts.
_BUFFER = re.compile(r"(^|\.)(rope_freqs|rope_factors_(long|short)|attn_rot_embd|exp_probs_b)\.")


def role_of(name: str) -> str:
    """Return the role of a tensor by its name; ``"other"`` if no rule matches.

    >>> role_of("blk.{}.attn_q.weight"), role_of("blk.0.ffn_up_exps.weight"), role_of("output.bias")
    ('attention', 'experts', 'head')
    """
    return _role(name) if len(name) <= LONGEST_NAME else "other"


@lru_cache(maxsize=4096)
def _role(name: str) -> str:
    return next((role for role, pattern in _RULES if pattern.search(name)), "other")


def buffers_among(names: Iterable[str]) -> frozenset[str]:
    """Return the names of tensors that are not parameters."""
    return frozenset(name for name in names if len(name) <= LONGEST_NAME and _BUFFER.search(name))


def experts_used(metadata: Mapping[str, Any]) -> Fraction | None:
    """Return the share of experts that a token uses, if the metadata states it."""
    architecture = metadata.get("general.architecture")
    count, used = (metadata.get(f"{architecture}.{key}") for key in ("expert_count", "expert_used_count"))
    if not isinstance(count, int) or not isinstance(used, int) or not 0 < used <= count:
        return None
    return Fraction(used, count)


def tied_output(metadata: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Return the tied head as {head: embedding}; llama.cpp uses the embedding if no head is stored.

    Some models have no head, so the result is empty: encoders (bidirectional attention or pooled
    output), vision parts (no token embedding), and adapters.

    Args:
        metadata: the file's metadata.
        names: its tensor names.
    """
    held = set(names)
    if EMBEDDING not in held or OUTPUT in held or "cls.output.weight" in held:
        return {}
    architecture = metadata.get("general.architecture")
    encoder = metadata.get(f"{architecture}.attention.causal") is False or metadata.get(f"{architecture}.pooling_type")
    return {} if encoder or metadata.get("general.type") == "adapter" else {OUTPUT: EMBEDDING}
