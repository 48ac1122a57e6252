"""OLMo 2 (OLMo Team 2025, "2 OLMo 2 Furious")."""

from typing import Any

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "olmo2",
    "Olmo2ForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=50304,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmo2(c: Config) -> nn.Model:
    return kit.decoder(c, block(c), nn.RMSNorm(c.hidden_size, kind="rms32"))


def block(c: Config, mlp: nn.Module | None = None, **how: Any) -> nn.Module:
    """Return a block with post-norms, and QK norm over all heads at once.

    Args:
        c: the config.
        mlp: the MLP; None: gated.
        how: fields of `Heads`.
    """
    d, runs = c.hidden_size, kit.heads(c, **how)
    return nn.Module(
        self_attn=kit.attention(
            c,
            runs,
            bias=c.attention_bias,
            q_norm=nn.RMSNorm(runs.queries * runs.size, kind="rms32"),
            k_norm=nn.RMSNorm(runs.keys * runs.size, kind="rms32"),
        ),
        mlp=mlp or kit.gated_mlp(d, c.intermediate_size, c.hidden_act),
        post_attention_layernorm=nn.RMSNorm(d, kind="rms32", after=True),
        post_feedforward_layernorm=nn.RMSNorm(d, kind="rms32", after=True),
    )
