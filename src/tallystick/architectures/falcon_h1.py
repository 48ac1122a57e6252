"""Falcon-H1: attention and Mamba 2 in parallel in each layer.

Source: TII 2025, "Falcon-H1: A Family of Hybrid-Head Language Models".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import MAMBA2, MAMBA2_RUNS, mamba2_of
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "falcon_h1",
    "FalconH1ForCausalLM",
    running=MAMBA2_RUNS,
    vocab_size=128000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(8),
    head_dim=optional(),
    mamba_d_ssm=optional(1024),
    **MAMBA2,
    mamba_rms_norm=False,
    projectors_bias=False,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def falcon_h1(c: Config) -> nn.Model:
    d = c.hidden_size
    inner = c.mamba_d_ssm or c.mamba_expand * d
    block = nn.Module(
        # No activation: activations behind the multipliers are not modelled.
        feed_forward=kit.gated_mlp(d, c.intermediate_size, bias=c.mlp_bias),
        mamba=mamba2_of(c, inner, output_bias=c.projectors_bias, norm=c.mamba_rms_norm),
        self_attn=kit.attention(c, kit.heads(c), bias=c.attention_bias),
        input_layernorm=nn.RMSNorm(d),
        pre_ff_layernorm=nn.RMSNorm(d),
    )
    return kit.frame(c, nn.Repeat(c.num_hidden_layers, block))
