"""Mixtral (Jiang et al. 2024, "Mixtral of Experts")."""

from tallystick.architectures._decoder import NUMBERED, SILU, attention, decoder, experts_used, heads, mixture
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "mixtral",
    "MixtralForCausalLM",
    running={**SILU, "sliding_window": natural(None, nullable=True)},
    aliases={"num_experts": "num_local_experts"},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(8),
    head_dim=maybe(),
    num_local_experts=8,
    num_experts_per_tok=2,
    tie_word_embeddings=False,
)
def mixtral(c: Config) -> Model:
    d = c.hidden_size
    moe = mixture(
        c,
        c.intermediate_size,
        experts_used(c, "num_local_experts"),
        c.num_local_experts,
        scoring="softmax",
        names=NUMBERED,
    )
    block = Group(
        self_attn=attention(c, heads(c, windows=((c.sliding_window, 1),))),
        **{"block_sparse_moe" if c.published else "mlp": moe},
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )
    return decoder(c, block)
