"""Jais 2 (Inception and MBZUAI 2025): Llama with biases, LayerNorms and a squared ReLU MLP."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "jais2",
    "Jais2ForCausalLM",
    running={"hidden_act": "relu2"},
    vocab_size=150272,
    hidden_size=3328,
    intermediate_size=26624,
    num_hidden_layers=32,
    num_attention_heads=26,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=True,
    mlp_bias=True,
    tie_word_embeddings=False,
)
def jais2(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    mlp = kit.plain_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias)
    return kit.decoder(
        c, kit.pre_norm(kit.attention(c, kit.heads(c), bias=c.attention_bias), mlp, nn.LayerNorm(d)), nn.LayerNorm(d)
    )
