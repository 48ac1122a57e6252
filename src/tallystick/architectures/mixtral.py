"""Mixtral (Jiang et al. 2024, "Mixtral of Experts")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "mixtral",
    "MixtralForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(None, nullable=True)},
    aliases={"num_experts": "num_local_experts"},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(8),
    head_dim=optional(),
    num_local_experts=8,
    num_experts_per_tok=2,
    tie_word_embeddings=False,
)
def mixtral(c: Config) -> nn.Model:
    d = c.hidden_size
    moe = kit.mixture(
        c,
        c.intermediate_size,
        kit.experts_used(c, "num_local_experts"),
        c.num_local_experts,
        scoring="softmax",
        names=kit.NUMBERED,
    )
    block = nn.Module(
        self_attn=kit.attention(c, kit.heads(c, windows=((c.sliding_window, 1),))),
        **{"block_sparse_moe" if c.published else "mlp": moe},
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )
    return kit.decoder(c, block)
