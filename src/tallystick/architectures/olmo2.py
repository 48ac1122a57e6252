"""OLMo 2 (OLMo Team 2025, "2 OLMo 2 Furious")."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, head_dim, key_value_heads
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
    d, size = c.hidden_size, head_dim(c)
    block = Group(
        # Queries and keys are normalised over all heads at once, and each sublayer's output, not its input.
        self_attn=attention(
            c,
            size,
            bias=c.attention_bias,
            q_norm=RMSNorm(c.num_attention_heads * size, kind="rms32"),
            k_norm=RMSNorm(key_value_heads(c) * size, kind="rms32"),
        ),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act),
        post_attention_layernorm=RMSNorm(d, kind="rms32", after=True),
        post_feedforward_layernorm=RMSNorm(d, kind="rms32", after=True),
    )
    return decoder(c, block, RMSNorm(d, kind="rms32"))
