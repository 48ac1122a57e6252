"""Granite SWASH with experts, and an MLP beside them that all tokens go through (IBM Research 2026)."""

from tallystick.architectures._decoder import SILU, decoder, experts_used, mixture
from tallystick.architectures.granite_swa import RUNNING, attends
from tallystick.architectures.granitemoeshared import shared_mlp
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "granitemoe_swa",
    "GraniteMoeSWAForCausalLM",
    running={**SILU, **RUNNING},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    shared_intermediate_size=natural(),
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    num_local_experts=8,
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoe_swa(c: Config) -> Model:
    d, of = c.hidden_size, c.num_local_experts
    used = experts_used(c, "num_local_experts")
    block = Group(
        self_attn=attends(c),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        block_sparse_moe=mixture(c, c.intermediate_size, used, of, under="router", names=None),
        shared_mlp=shared_mlp(c) if c.shared_intermediate_size else None,
    )
    return decoder(c, block)
