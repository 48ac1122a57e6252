"""EXAONE 4: QK norm, post-norms, and sliding windows in most layers.

Source: LG AI Research 2025, "EXAONE 4.0: Unified Large Language Models Integrating
Non-reasoning and Reasoning Modes".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "exaone4",
    "Exaone4ForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "sliding_window": nonnegative(4096, nullable=True),
        "sliding_window_pattern": 4,
        "layer_types": None,
    },
    vocab_size=102400,
    hidden_size=4096,
    intermediate_size=16384,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=32,
    head_dim=optional(),
    tie_word_embeddings=False,
)
def exaone4(c: Config) -> nn.Model:
    d, pattern = c.hidden_size, nn.EVERYTHING
    if c.layer_types is None and c.sliding_window is not None:
        pattern = ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1))
    runs = kit.heads(c, windows=kit.windows_of(c, pattern))
    block = nn.Module(
        self_attn=kit.attention(c, runs, **kit.head_norms(runs)),
        mlp=kit.gated_mlp(d, c.intermediate_size, c.hidden_act),
        post_attention_layernorm=nn.RMSNorm(d, after=True),
        post_feedforward_layernorm=nn.RMSNorm(d, after=True),
    )
    return kit.decoder(c, block)
