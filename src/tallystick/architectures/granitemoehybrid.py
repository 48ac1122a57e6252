"""Granite 4 (IBM Research 2025): Mamba 2 and some attention; shared MLP, optional experts."""

from tallystick.architectures import kit
from tallystick.architectures.granitemoe import experts
from tallystick.architectures.granitemoeshared import shared_mlp
from tallystick.architectures.kit.mamba import MAMBA2, MAMBA2_RUNS, mamba2_of
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "granitemoehybrid",
    "GraniteMoeHybridForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, **MAMBA2_RUNS},
    aliases={"layers_block_type": "layer_types"},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    shared_intermediate_size=nonnegative(1024),
    num_hidden_layers=32,
    layer_types=None,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    **MAMBA2,
    num_local_experts=nonnegative(8),
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoehybrid(c: Config) -> nn.Model:
    kinds = kit.listed(c, "layer_types", (kit.LINEAR, kit.FULL), lambda layer: kit.LINEAR)
    return kit.frame(c, kit.in_turns(kinds, lambda kind: _block(c, kind), depth=c.num_hidden_layers), norm="norm")


def _block(c: Config, kind: str) -> nn.Module:
    d = c.hidden_size
    if kind == kit.LINEAR:
        mixer: dict[str, nn.Module] = {"mamba": mamba2_of(c, c.mamba_expand * d)}
    else:
        mixer = {"self_attn": kit.attention(c, kit.heads(c), bias=c.attention_bias)}
    return nn.Module(
        **mixer,
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        block_sparse_moe=experts(c, modelled=False) if c.num_local_experts else None,
        shared_mlp=shared_mlp(c),
    )
