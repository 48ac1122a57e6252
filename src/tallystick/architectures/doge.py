"""Doge (Shi et al. 2024, "Wonderful Matrices"): value-dependent masks, product-key experts."""

import math
from typing import Any

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "doge",
    "DogeForCausalLM",
    running={"sliding_window": nonnegative(None, nullable=True)},
    vocab_size=32768,
    hidden_size=1024,
    intermediate_size=2048,
    num_hidden_layers=32,
    num_attention_heads=8,
    num_key_value_heads=optional(),
    head_dim=optional(),
    is_moe=False,
    num_experts=16384,
    num_experts_per_tok=64,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def doge(c: Config) -> nn.Model:
    d, runs, bias = c.hidden_size, kit.heads(c, windows=((c.sliding_window, 1),)), c.attention_bias
    mask: dict[str, Any] = {
        "A": nn.Parameter((runs.keys,)),
        "dt_proj": nn.Linear(runs.keys * runs.size, runs.keys, bias=bias),
    }
    block = nn.Module(
        input_residual=nn.Parameter((d,)),  # scales the residual around the attention
        post_attention_residual=nn.Parameter((d,)),
        input_layernorm=nn.RMSNorm(d),
        self_attn=kit.attention(c, runs, bias=bias, **kit.head_norms(runs), **mask),  # activations not modelled: mask
        post_attention_layernorm=nn.RMSNorm(d),
        mlp=_mixture(c) if c.is_moe else kit.gated_mlp(d, c.intermediate_size, bias=c.mlp_bias),
    )
    return kit.decoder(c, block)


def _mixture(c: Config) -> nn.Module:
    """A dense MLP, and experts of one hidden element each, found by product keys."""
    d, of = c.hidden_size, c.num_experts
    used, row = kit.experts_used(c, "num_experts"), nn.Parameter((of, d))
    return nn.MLP(
        **kit.gated_mlp(d, c.intermediate_size, bias=c.mlp_bias).children,
        router_gate=kit.router(d, None, 2 * math.isqrt(int(of))),
        down_embed=nn.Experts(used, of, weight=row),
        up_embed=nn.Experts(used, of, weight=row),
    )
