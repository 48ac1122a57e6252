"""Trinity (Arcee AI 2025, "Trinity"): gated attention, pre- and post-norms, shared experts."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "afmoe",
    "AfmoeForCausalLM",
    running={"sliding_window": nonnegative(1024, nullable=True), "global_attn_every_n_layers": 4, "layer_types": None},
    vocab_size=200192,
    hidden_size=2048,
    intermediate_size=6144,
    moe_intermediate_size=1408,
    num_hidden_layers=32,
    num_dense_layers=nonnegative(1),
    num_attention_heads=16,
    num_key_value_heads=optional(),
    head_dim=128,
    num_experts=64,
    num_experts_per_tok=6,
    num_shared_experts=nonnegative(2),
    attention_bias=False,
    tie_word_embeddings=False,
)
def afmoe(c: Config) -> nn.Model:
    dense_layers = min(c.num_dense_layers, c.num_hidden_layers)
    return kit.decoder(
        c,
        nn.ModuleList(
            (dense_layers, _block(c, kit.gated_mlp(c.hidden_size, c.intermediate_size))),
            (c.num_hidden_layers - dense_layers, _block(c, _mixture(c))),
        ),
    )


def _block(c: Config, mlp: nn.Module) -> nn.Module:
    d, every = c.hidden_size, int(c.global_attn_every_n_layers)
    runs = kit.heads(c, windows=kit.windows_of(c, ((c.sliding_window, every - 1), (None, 1))))
    # A gate on the heads' output; its activations are not modelled.
    gate = nn.Linear(d, runs.queries * runs.size, bias=False)
    return nn.Module(
        self_attn=kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs), gate_proj=gate),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d, after=True),
        pre_mlp_layernorm=nn.RMSNorm(d),
        post_mlp_layernorm=nn.RMSNorm(d, after=True),
        mlp=mlp,
    )


def _mixture(c: Config) -> nn.Module:
    inner, of = c.moe_intermediate_size, c.num_experts
    moe = kit.mixture(
        c,
        inner,
        kit.experts_used(c, "num_experts"),
        of,
        shared_experts=kit.gated_mlp(c.hidden_size, inner * c.num_shared_experts),
        # Added to the experts' scores: a parameter that receives no gradient.
        expert_bias=nn.Parameter((of,), "router", trainable=False),
    )
    return nn.Module(router=nn.Module(gate=moe.children["gate"]), **moe.with_children(gate=None).children)
