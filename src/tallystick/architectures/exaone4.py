"""EXAONE 4 (LG AI Research 2025, "EXAONE 4.0: Unified Large Language Models Integrating Non-reasoning and Reasoning Modes")."""

from tallystick.anatomy import EVERYTHING
from tallystick.architectures._decoder import (
    SILU,
    attention,
    decoder,
    gated_mlp,
    head_norms,
    heads,
    windows_of,
)
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "exaone4",
    "Exaone4ForCausalLM",
    running={
        **SILU,
        "sliding_window": natural(4096, nullable=True),
        "sliding_window_pattern": 4,
        "layer_types": None,
    },
    vocab_size=102400,
    hidden_size=4096,
    intermediate_size=16384,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=32,
    head_dim=maybe(),
    tie_word_embeddings=False,
)
def exaone4(c: Config) -> Model:
    d, pattern = c.hidden_size, EVERYTHING
    if c.layer_types is None and c.sliding_window is not None:
        pattern = ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1))
    runs = heads(c, windows=windows_of(c, pattern))
    block = Group(
        self_attn=attention(c, runs, **head_norms(runs)),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act),
        post_attention_layernorm=RMSNorm(d, after=True),
        post_feedforward_layernorm=RMSNorm(d, after=True),
    )
    return decoder(c, block)
