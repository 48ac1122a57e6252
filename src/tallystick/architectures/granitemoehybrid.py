"""Granite 4 (IBM Research 2025): Mamba 2, attention here and there; experts, if any, beside an MLP that all tokens go through."""

from tallystick.architectures._decoder import SILU, attention, frame, heads
from tallystick.architectures._layers import FULL, LINEAR, in_turns, listed
from tallystick.architectures._mamba import MAMBA2, MAMBA2_RUNS, mamba2_of
from tallystick.architectures.granitemoe import experts
from tallystick.architectures.granitemoeshared import shared_mlp
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "granitemoehybrid",
    "GraniteMoeHybridForCausalLM",
    running={**SILU, **MAMBA2_RUNS},
    aliases={"layers_block_type": "layer_types"},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    shared_intermediate_size=natural(1024),
    num_hidden_layers=32,
    layer_types=None,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    **MAMBA2,
    num_local_experts=natural(8),
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoehybrid(c: Config) -> Model:
    kinds = listed(c, "layer_types", (LINEAR, FULL), lambda layer: LINEAR)
    return frame(c, in_turns(kinds, lambda kind: _block(c, kind), depth=c.num_hidden_layers), norm="norm")


def _block(c: Config, kind: str) -> Group:
    d = c.hidden_size
    if kind == LINEAR:
        mixer: dict[str, Group] = {"mamba": mamba2_of(c, c.mamba_expand * d)}
    else:
        mixer = {"self_attn": attention(c, heads(c), bias=c.attention_bias)}
    return Group(
        **mixer,
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        block_sparse_moe=experts(c, told=False) if c.num_local_experts else None,
        shared_mlp=shared_mlp(c),
    )
