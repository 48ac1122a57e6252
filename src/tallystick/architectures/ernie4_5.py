"""ERNIE 4.5 (Baidu ERNIE Team 2025, "ERNIE 4.5 Technical Report"), dense."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "ernie4_5",
    "Ernie4_5ForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=103424,
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=18,
    num_attention_heads=16,
    num_key_value_heads=optional(2),
    head_dim=optional(128),
    use_bias=optional(False),
    tie_word_embeddings=True,
)
def ernie4_5(c: Config) -> nn.Model:
    d, bias = c.hidden_size, c.use_bias
    attends = kit.attention(c, kit.heads(c), bias=bias)
    return kit.decoder(
        c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=bias), nn.RMSNorm(d))
    )
