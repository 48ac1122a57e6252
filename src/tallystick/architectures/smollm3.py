"""SmolLM3 (Hugging Face 2025, "SmolLM3: smol, multilingual, long-context reasoner"): every fourth layer without positions."""

from tallystick.architectures._decoder import (
    SILU,
    attention,
    decoder,
    gated_mlp,
    heads,
    pre_norm,
    rope_windows,
    windows_of,
)
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "smollm3",
    "SmolLM3ForCausalLM",
    running={
        **SILU,
        "use_sliding_window": False,
        "sliding_window": natural(None, nullable=True),
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "layer_types": None,
    },
    vocab_size=128256,
    hidden_size=2048,
    intermediate_size=11008,
    num_hidden_layers=36,
    num_attention_heads=16,
    num_key_value_heads=maybe(4),
    head_dim=maybe(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=True,
)
def smollm3(c: Config) -> Model:
    d = c.hidden_size
    near = c.sliding_window if c.use_sliding_window else None
    windows = windows_of(c, rope_windows(c, near, turned=False))
    attends = attention(c, heads(c, windows=windows), bias=c.attention_bias)
    return decoder(c, pre_norm(attends, gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), RMSNorm(d)))
