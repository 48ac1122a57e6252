"""Gemma 3 without its eyes (Gemma Team 2025, "Gemma 3 Technical Report")."""

from tallystick.anatomy import Windows
from tallystick.architectures._decoder import attention, decoder, gated_mlp, head_norms, heads, windows_of
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "gemma3_text",
    "Gemma3ForCausalLM",
    running={
        "hidden_activation": "gelu_pytorch_tanh",
        "final_logit_softcapping": None,
        "sliding_window": natural(4096, nullable=True),
        "sliding_window_pattern": 6,
        "layer_types": None,
        "use_bidirectional_attention": maybe(False),
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
def gemma3_text(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers asks it, though head_dim is stated
    d, runs = c.hidden_size, heads(c, windows=_windows(c), apart=True)
    block = Group(
        self_attn=attention(c, runs, bias=c.attention_bias, **head_norms(runs, kind="gemma")),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_activation),
        input_layernorm=RMSNorm(d, kind="gemma"),
        post_attention_layernorm=RMSNorm(d, kind="gemma", after=True),
        pre_feedforward_layernorm=RMSNorm(d, kind="gemma"),
        post_feedforward_layernorm=RMSNorm(d, kind="gemma", after=True),
    )
    return decoder(c, block, RMSNorm(d, kind="gemma"), capped=bool(c.final_logit_softcapping))


def _windows(c: Config) -> Windows:
    """Five layers that see a window, then one that sees all. Where a window looks both ways, half of it looks back."""
    windows = windows_of(c, ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1)))
    if not c.use_bidirectional_attention:
        return windows
    return [(None if window is None else int(window) // 2 + 1, run) for window, run in windows]
