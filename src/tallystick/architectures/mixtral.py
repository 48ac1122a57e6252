"""Mixtral (Jiang et al. 2024, "Mixtral of Experts")."""

from tallystick.architectures._decoder import SILU, attention, decoder, experts, experts_used, heads, router
from tallystick.blueprint import Config, Feed, Group, Model, RMSNorm, Routing, architecture, maybe, natural


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
    expert, used = (
        Feed(d, c.intermediate_size, c.hidden_act, gated=True, fused=True),
        experts_used(c, "num_local_experts"),
    )
    moe = Group(
        gate=router(Routing(expert, c.num_local_experts, used, "softmax")),
        experts=experts(c, d, c.intermediate_size, of="num_local_experts", names=("w1", "w3", "w2")),
    )
    block = Group(
        self_attn=attention(c, heads(c, windows=((c.sliding_window, 1),))),
        **{"block_sparse_moe" if c.published else "mlp": moe},
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )
    return decoder(c, block)
