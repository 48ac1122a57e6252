"""Falcon-H1 (TII 2025, "Falcon-H1: A Family of Hybrid-Head Language Models"): attention and Mamba 2 side by side in each layer."""

from tallystick.architectures._decoder import attention, frame, gated_mlp, heads
from tallystick.architectures._mamba import MAMBA2, MAMBA2_RUNS, mamba2_of
from tallystick.blueprint import Config, Group, Model, Repeat, RMSNorm, architecture, maybe


@architecture(
    "falcon_h1",
    "FalconH1ForCausalLM",
    running=MAMBA2_RUNS,
    vocab_size=128000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(8),
    head_dim=maybe(),
    mamba_d_ssm=maybe(1024),
    **MAMBA2,
    mamba_rms_norm=False,
    projectors_bias=False,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def falcon_h1(c: Config) -> Model:
    d = c.hidden_size
    inner = c.mamba_d_ssm or c.mamba_expand * d
    block = Group(
        feed_forward=gated_mlp(d, c.intermediate_size, bias=c.mlp_bias),  # multipliers: how it runs is not told
        mamba=mamba2_of(c, inner, output_bias=c.projectors_bias, norm=c.mamba_rms_norm),
        self_attn=attention(c, heads(c), bias=c.attention_bias),
        input_layernorm=RMSNorm(d),
        pre_ff_layernorm=RMSNorm(d),
    )
    return frame(c, Repeat(c.num_hidden_layers, block))
