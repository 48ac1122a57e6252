"""Doge (Shi et al. 2024, "Wonderful Matrices"): attention masked by what its values say, and MLPs beside thousands of small experts."""

import math
from typing import Any

from tallystick.architectures._decoder import attention, decoder, experts_used, gated_mlp, head_norms, heads, router
from tallystick.blueprint import (
    MLP,
    Config,
    Experts,
    Group,
    Linear,
    Model,
    RMSNorm,
    Tensor,
    architecture,
    maybe,
    natural,
)


@architecture(
    "doge",
    "DogeForCausalLM",
    running={"sliding_window": natural(None, nullable=True)},
    vocab_size=32768,
    hidden_size=1024,
    intermediate_size=2048,
    num_hidden_layers=32,
    num_attention_heads=8,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    is_moe=False,
    num_experts=16384,
    num_experts_per_tok=64,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def doge(c: Config) -> Model:
    d, runs, bias = c.hidden_size, heads(c, windows=((c.sliding_window, 1),)), c.attention_bias
    mask: dict[str, Any] = {"A": Tensor((runs.keys,)), "dt_proj": Linear(runs.keys * runs.size, runs.keys, bias=bias)}
    block = Group(
        input_residual=Tensor((d,)),  # scales what goes past the attention
        post_attention_residual=Tensor((d,)),
        input_layernorm=RMSNorm(d),
        self_attn=attention(c, runs, bias=bias, **head_norms(runs), **mask),  # what the mask keeps is not told
        post_attention_layernorm=RMSNorm(d),
        mlp=_mixture(c) if c.is_moe else gated_mlp(d, c.intermediate_size, bias=c.mlp_bias),
    )
    return decoder(c, block)


def _mixture(c: Config) -> Group:
    """An MLP for all tokens, beside experts of one hidden element each, found by a row and a column of a square of keys."""
    d, of = c.hidden_size, c.num_experts
    used, row = experts_used(c, "num_experts"), Tensor((of, d))
    return MLP(
        **gated_mlp(d, c.intermediate_size, bias=c.mlp_bias).children,
        router_gate=router(d, None, 2 * math.isqrt(int(of))),
        down_embed=Experts(used, of, weight=row),
        up_embed=Experts(used, of, weight=row),
    )
