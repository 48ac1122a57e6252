"""Mistral (Jiang et al. 2023, "Mistral 7B")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "mistral",
    "MistralForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(4096, nullable=True)},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(8),
    head_dim=optional(),
    tie_word_embeddings=False,
)
def mistral(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c, windows=((c.sliding_window, 1),)))
    mlp = kit.gated_mlp(d, c.intermediate_size, c.hidden_act)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.RMSNorm(d)))
