"""Granite 3 with experts (Granite Team 2024, "Granite 3.0 Language Models")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "granitemoe",
    "GraniteMoeForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    num_local_experts=8,
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoe(c: Config) -> nn.Model:
    return kit.decoder(c, block(c))


def block(c: Config, **extras: nn.Node | None) -> nn.Module:
    """Return a block of attention and experts.

    Args:
        c: the config.
        extras: further modules; with any of them, the experts' activations are not modelled.
    """
    d = c.hidden_size
    return nn.Module(
        self_attn=kit.attention(c, kit.heads(c), bias=c.attention_bias),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        block_sparse_moe=experts(c, modelled=not any(extras.values())),
        **extras,
    )


def experts(c: Config, *, modelled: bool) -> nn.Module:
    """Return the experts and their router; `modelled`: whether their activations are modelled."""
    d, inner, of = c.hidden_size, c.intermediate_size, c.num_local_experts
    used = kit.experts_used(c, "num_local_experts")
    if not c.published:
        return kit.mixture(c, inner, used, of, scoring="chosen" if modelled else None, under="router")
    return nn.Module(
        input_linear=nn.Experts(used, of, weight=nn.Parameter((of, 2 * inner, d))),
        output_linear=nn.Experts(used, of, weight=nn.Parameter((of, d, inner))),
        router=nn.Module(layer=kit.router(d, None, of)),
    )
