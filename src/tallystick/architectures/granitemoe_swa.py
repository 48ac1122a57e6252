"""Granite SWASH with experts and a shared MLP (IBM Research 2026)."""

from tallystick.architectures import kit
from tallystick.architectures.granite_swa import RUNNING, attends
from tallystick.architectures.granitemoeshared import shared_mlp
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "granitemoe_swa",
    "GraniteMoeSWAForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, **RUNNING},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    shared_intermediate_size=nonnegative(),
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    num_local_experts=8,
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoe_swa(c: Config) -> nn.Model:
    d, of = c.hidden_size, c.num_local_experts
    used = kit.experts_used(c, "num_local_experts")
    block = nn.Module(
        self_attn=attends(c),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        block_sparse_moe=kit.mixture(c, c.intermediate_size, used, of, under="router", names=None),
        shared_mlp=shared_mlp(c) if c.shared_intermediate_size else None,
    )
    return kit.decoder(c, block)
