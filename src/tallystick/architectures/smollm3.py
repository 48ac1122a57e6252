"""SmolLM3: Llama without RoPE in every fourth layer.

Source: Hugging Face 2025, "SmolLM3: smol, multilingual, long-context reasoner".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "smollm3",
    "SmolLM3ForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "use_sliding_window": False,
        "sliding_window": nonnegative(None, nullable=True),
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "layer_types": None,
    },
    vocab_size=128256,
    hidden_size=2048,
    intermediate_size=11008,
    num_hidden_layers=36,
    num_attention_heads=16,
    num_key_value_heads=optional(4),
    head_dim=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=True,
)
def smollm3(c: Config) -> nn.Model:
    d = c.hidden_size
    near = c.sliding_window if c.use_sliding_window else None
    windows = kit.windows_of(c, kit.rope_windows(c, near, turned=False))
    attends = kit.attention(c, kit.heads(c, windows=windows), bias=c.attention_bias)
    return kit.decoder(
        c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), nn.RMSNorm(d))
    )
