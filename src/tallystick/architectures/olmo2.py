"""OLMo 2 (OLMo Team 2025, "2 OLMo 2 Furious")."""

from typing import Any

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe


@architecture(
    "olmo2",
    "Olmo2ForCausalLM",
    running=SILU,
    vocab_size=50304,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmo2(c: Config) -> Model:
    return decoder(c, block(c), RMSNorm(c.hidden_size, kind="rms32"))


def block(c: Config, mlp: Group | None = None, **how: Any) -> Group:
    """Queries and keys are normalised over all heads at once, and each sublayer's output, not its input."""
    d, runs = c.hidden_size, heads(c, precise=True, **how)
    return Group(
        self_attn=attention(
            c,
            runs,
            bias=c.attention_bias,
            q_norm=RMSNorm(runs.queries * runs.size, kind="rms32"),
            k_norm=RMSNorm(runs.keys * runs.size, kind="rms32"),
        ),
        mlp=mlp or gated_mlp(d, c.intermediate_size, c.hidden_act),
        post_attention_layernorm=RMSNorm(d, kind="rms32", after=True),
        post_feedforward_layernorm=RMSNorm(d, kind="rms32", after=True),
    )
