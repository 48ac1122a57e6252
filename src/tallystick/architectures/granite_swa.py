"""Granite SWASH (IBM Research 2026): Granite with sliding windows and a sink per head."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional

RUNNING = {"sliding_window": nonnegative(128, nullable=True), "layer_types": None}


@architecture(
    "granite_swa",
    "GraniteSWAForCausalLM",
    running=RUNNING,
    vocab_size=100352,
    hidden_size=2560,
    intermediate_size=8192,
    num_hidden_layers=24,
    num_attention_heads=20,
    num_key_value_heads=optional(4),
    head_dim=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=True,
)
def granite_swa(c: Config) -> nn.Model:
    d = c.hidden_size
    mlp = kit.gated_mlp(d, c.intermediate_size, bias=c.mlp_bias)  # activations are not modelled: RoPE differs by layer
    return kit.decoder(c, kit.pre_norm(attends(c), mlp, nn.RMSNorm(d)))


def attends(c: Config) -> nn.Attention:
    """Return attention: full in every fourth layer, windows elsewhere, and a sink per head."""
    runs = kit.heads(c, windows=kit.windows_of(c, ((None, 1), (c.sliding_window, 3))), sinks=True)
    return kit.attention(c, runs, bias=c.attention_bias, sinks=nn.Parameter((c.num_attention_heads,)))
