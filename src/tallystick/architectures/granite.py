"""Granite 3, dense: Llama's tensors with scalar multipliers.

Source: Granite Team 2024, "Granite 3.0 Language Models".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "granite",
    "GraniteForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def granite(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c), bias=c.attention_bias)
    mlp = kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.RMSNorm(d)))
