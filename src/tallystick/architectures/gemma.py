"""Gemma (Gemma Team 2024).

Source: "Gemma: Open Models Based on Gemini Research and Technology".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "gemma",
    "GemmaForCausalLM",
    running={"hidden_act": "gelu_pytorch_tanh"},
    vocab_size=256000,
    hidden_size=3072,
    intermediate_size=24576,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=16,
    head_dim=256,
    attention_bias=False,
    tie_word_embeddings=True,
)
def gemma(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c), bias=c.attention_bias)
    mlp = kit.gated_mlp(d, c.intermediate_size, c.hidden_act)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.RMSNorm(d, kind="gemma")), nn.RMSNorm(d, kind="gemma"))
