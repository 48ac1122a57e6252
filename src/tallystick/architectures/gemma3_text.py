"""Gemma 3's text model (Gemma Team 2025, "Gemma 3 Technical Report")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "gemma3_text",
    "Gemma3ForCausalLM",
    running={
        "hidden_activation": "gelu_pytorch_tanh",
        "final_logit_softcapping": None,
        "sliding_window": nonnegative(4096, nullable=True),
        "sliding_window_pattern": 6,
        "layer_types": None,
        "use_bidirectional_attention": optional(False),
    },
    vocab_size=262208,
    hidden_size=2304,
    intermediate_size=9216,
    num_hidden_layers=26,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=256,
    attention_bias=False,
    tie_word_embeddings=True,
)
def gemma3_text(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers requires it even if head_dim is stated
    d, runs = c.hidden_size, kit.heads(c, windows=_windows(c))
    block = nn.Module(
        self_attn=kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs, kind="gemma")),
        mlp=kit.gated_mlp(d, c.intermediate_size, c.hidden_activation),
        input_layernorm=nn.RMSNorm(d, kind="gemma"),
        post_attention_layernorm=nn.RMSNorm(d, kind="gemma", after=True),
        pre_feedforward_layernorm=nn.RMSNorm(d, kind="gemma"),
        post_feedforward_layernorm=nn.RMSNorm(d, kind="gemma", after=True),
    )
    return kit.decoder(c, block, nn.RMSNorm(d, kind="gemma"), capped=bool(c.final_logit_softcapping))


def _windows(c: Config) -> nn.Windows:
    """Five window layers per full-attention layer; a bidirectional window looks back by half."""
    windows = kit.windows_of(c, ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1)))
    if not c.use_bidirectional_attention:
        return windows
    return [(None if window is None else int(window) // 2 + 1, run) for window, run in windows]
