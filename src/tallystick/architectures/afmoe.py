"""Arcee's Trinity (Arcee AI 2025, "Trinity"): gated attention, norms before and behind, experts beside shared ones."""

from tallystick.architectures._decoder import (
    attention,
    decoder,
    experts_used,
    gated_mlp,
    head_norms,
    heads,
    mixture,
    windows_of,
)
from tallystick.blueprint import (
    Config,
    Group,
    Linear,
    Model,
    RMSNorm,
    Stack,
    Tensor,
    architecture,
    maybe,
    natural,
)


@architecture(
    "afmoe",
    "AfmoeForCausalLM",
    running={"sliding_window": natural(1024, nullable=True), "global_attn_every_n_layers": 4, "layer_types": None},
    vocab_size=200192,
    hidden_size=2048,
    intermediate_size=6144,
    moe_intermediate_size=1408,
    num_hidden_layers=32,
    num_dense_layers=natural(1),
    num_attention_heads=16,
    num_key_value_heads=maybe(),
    head_dim=128,
    num_experts=64,
    num_experts_per_tok=6,
    num_shared_experts=natural(2),
    attention_bias=False,
    tie_word_embeddings=False,
)
def afmoe(c: Config) -> Model:
    dense_layers = min(c.num_dense_layers, c.num_hidden_layers)
    return decoder(
        c,
        Stack(
            (dense_layers, _block(c, gated_mlp(c.hidden_size, c.intermediate_size))),
            (c.num_hidden_layers - dense_layers, _block(c, _mixture(c))),
        ),
    )


def _block(c: Config, mlp: Group) -> Group:
    d, every = c.hidden_size, int(c.global_attn_every_n_layers)
    runs = heads(c, windows=windows_of(c, ((c.sliding_window, every - 1), (None, 1))))
    gate = Linear(d, runs.queries * runs.size, bias=False)  # of what the heads give: what that keeps is not told
    return Group(
        self_attn=attention(c, runs, bias=c.attention_bias, **head_norms(runs), gate_proj=gate),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d, after=True),
        pre_mlp_layernorm=RMSNorm(d),
        post_mlp_layernorm=RMSNorm(d, after=True),
        mlp=mlp,
    )


def _mixture(c: Config) -> Group:
    inner, of = c.moe_intermediate_size, c.num_experts
    moe = mixture(
        c,
        inner,
        experts_used(c, "num_experts"),
        of,
        shared_experts=gated_mlp(c.hidden_size, inner * c.num_shared_experts),
        # Of the experts' scores: no gradient changes it, though it is a parameter.
        expert_bias=Tensor((of,), "router", trainable=False),
    )
    return Group(router=Group(gate=moe.children["gate"]), **moe.with_children(gate=None).children)
