"""What ggml's names for tensors and keys of metadata mean, as llama.cpp writes them for every architecture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tallystick.core.tensor_names import LONGEST_TOLD

EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"

# The first rule whose pattern is found decides. Attention's norms are norms, shared experts are ordinary MLPs.
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

# Trained by nobody: rotary positions, computed when a model is converted, and what balances experts.
_BUFFER = re.compile(r"(^|\.)(rope_freqs|rope_factors_(long|short)|attn_rot_embd|exp_probs_b)\.")


def role_of(name: str) -> str:
    """The role of a tensor, ``"other"`` where its name gives none away.

    >>> role_of("blk.{}.attn_q.weight"), role_of("blk.{}.ffn_up_exps.weight"), role_of("output.weight")
    ('attention', 'experts', 'head')
    """
    return _role(name) if len(name) <= LONGEST_TOLD else "other"


@lru_cache(maxsize=4096)
def _role(name: str) -> str:
    return next((role for role, pattern in _RULES if pattern.search(name)), "other")


def buffers_among(names: Iterable[str]) -> frozenset[str]:
    """The names of tensors that are no parameters."""
    return frozenset(name for name in names if len(name) <= LONGEST_TOLD and _BUFFER.search(name))


def experts_used(metadata: Mapping[str, Any]) -> Fraction | None:
    """The share of its experts that a token uses, where the metadata tells."""
    architecture = metadata.get("general.architecture")
    count, used = (metadata.get(f"{architecture}.{key}") for key in ("expert_count", "expert_used_count"))
    if not isinstance(count, int) or not isinstance(used, int) or not 0 < used <= count:
        return None
    return Fraction(used, count)


def tied_output(metadata: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """The head that is the embedding: where none is stored, llama.cpp multiplies with the embedding.

    An encoder has no head: its attention looks both ways, or its output is pooled. Nor have a vision part, which has no
    embedding of tokens, and an adapter.
    """
    held = set(names)
    if EMBEDDING not in held or OUTPUT in held or "cls.output.weight" in held:
        return {}
    architecture = metadata.get("general.architecture")
    encoder = metadata.get(f"{architecture}.attention.causal") is False or metadata.get(f"{architecture}.pooling_type")
    return {} if encoder or metadata.get("general.type") == "adapter" else {OUTPUT: EMBEDDING}
