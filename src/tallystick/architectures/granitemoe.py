"""Granite 3 with experts (Granite Team 2024, "Granite 3.0 Language Models")."""

from tallystick.architectures._decoder import SILU, attention, decoder, experts_used, heads, mixture, router
from tallystick.blueprint import Config, Experts, Group, Model, Node, RMSNorm, Tensor, architecture, maybe


@architecture(
    "granitemoe",
    "GraniteMoeForCausalLM",
    running=SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    num_local_experts=8,
    num_experts_per_tok=2,
    attention_bias=False,
    tie_word_embeddings=False,
)
def granitemoe(c: Config) -> Model:
    return decoder(c, block(c))


def block(c: Config, **beside: Node | None) -> Group:
    """Attention, experts, and what is `beside` them: what that reads together with them is not told."""
    d = c.hidden_size
    return Group(
        self_attn=attention(c, heads(c), bias=c.attention_bias),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        block_sparse_moe=experts(c, told=not any(beside.values())),
        **beside,
    )


def experts(c: Config, *, told: bool) -> Group:
    """The experts and their router; `told` is whether how they run is."""
    d, inner, of = c.hidden_size, c.intermediate_size, c.num_local_experts
    used = experts_used(c, "num_local_experts")
    if not c.published:
        return mixture(c, inner, used, of, scoring="chosen" if told else None, under="router")
    return Group(
        input_linear=Experts(used, of, weight=Tensor((of, 2 * inner, d))),
        output_linear=Experts(used, of, weight=Tensor((of, d, inner))),
        router=Group(layer=router(d, None, of)),
    )
