"""Granite 3 with experts, and an MLP beside them that all tokens go through (IBM Research 2025)."""

from tallystick.architectures._decoder import SILU, decoder
from tallystick.architectures.granitemoe import block
from tallystick.blueprint import MLP, Config, Linear, Model, architecture, maybe, natural


@architecture(
    "granitemoeshared",
    "GraniteMoeSharedForCausalLM",
    running=SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    shared_intermediate_size=natural(),
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    num_local_experts=8,
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoeshared(c: Config) -> Model:
    return decoder(c, block(c, shared_mlp=shared_mlp(c) if c.shared_intermediate_size else None))


def shared_mlp(c: Config) -> MLP:
    """What all tokens go through beside the experts."""
    d, inner = c.hidden_size, c.shared_intermediate_size
    return MLP(
        input_linear=Linear(d, 2 * inner, bias=False),
        output_linear=Linear(inner, d, bias=False),
    )
