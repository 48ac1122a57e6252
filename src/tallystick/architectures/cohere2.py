"""Command R7B and Command A: sliding windows, and full-attention layers without RoPE.

Source: Cohere 2025, "Command A: An Enterprise-Ready Large Language Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.cohere import block, norm
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "cohere2",
    "Cohere2ForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "sliding_window": nonnegative(4096, nullable=True),
        "sliding_window_pattern": 4,
        "layer_types": None,
    },
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    num_hidden_layers=40,
    num_attention_heads=64,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere2(c: Config) -> nn.Model:
    windows = kit.windows_of(c, ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1)))
    return kit.decoder(
        c,
        block(c, kit.attention(c, kit.heads(c, windows=windows), bias=c.attention_bias)),
        norm(c.hidden_size),
    )
