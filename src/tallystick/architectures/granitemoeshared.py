"""Granite 3 with experts and a shared MLP (IBM Research 2025)."""

from tallystick.architectures import kit
from tallystick.architectures.granitemoe import block
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "granitemoeshared",
    "GraniteMoeSharedForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    shared_intermediate_size=nonnegative(),
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    num_local_experts=8,
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoeshared(c: Config) -> nn.Model:
    return kit.decoder(c, block(c, shared_mlp=shared_mlp(c) if c.shared_intermediate_size else None))


def shared_mlp(c: Config) -> nn.MLP:
    """Return the shared MLP, which all tokens use in addition to their experts."""
    d, inner = c.hidden_size, c.shared_intermediate_size
    return nn.MLP(
        input_linear=nn.Linear(d, 2 * inner, bias=False),
        output_linear=nn.Linear(inner, d, bias=False),
    )
