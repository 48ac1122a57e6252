"""Beam (Reflection AI 2026): gated heads that see windows, norms on both sides, and experts past the first layers."""

from tallystick.architectures._decoder import (
    attention,
    decoder,
    experts_used,
    gated_mlp,
    head_norms,
    heads,
    in_runs,
    mixture,
)
from tallystick.architectures._layers import dense_and_sparse, listed
from tallystick.blueprint import Buffer, Config, Group, Linear, Model, RMSNorm, Tensor, architecture, natural

KINDS = ("sliding_attention", "full_attention")


@architecture(
    "beam",
    "BeamForCausalLM",
    running={"sliding_window": natural(512, nullable=True), "layer_types": None},
    vocab_size=151936,
    hidden_size=5120,
    intermediate_size=20480,
    moe_intermediate_size=2560,
    num_hidden_layers=52,
    mlp_layer_types=None,
    num_attention_heads=48,
    num_key_value_heads=8,
    head_dim=128,
    num_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def beam(c: Config) -> Model:
    d, of, last = c.hidden_size, c.num_experts, int(c.num_hidden_layers) - 1
    kinds = listed(c, "layer_types", KINDS, lambda layer: KINDS[layer == last or (layer + 1) % 6 == 0])
    runs = heads(c, windows=in_runs((kind == KINDS[0] for kind in kinds), c.sliding_window, None))
    attends = attention(
        c,
        runs,
        bias=c.attention_bias,
        gate_proj=Linear(d, runs.queries * runs.size, bias=False),
        gate_bias=Tensor((runs.queries,)),
        **head_norms(runs),
    )
    bias = {"e_score_correction_bias": Buffer(of)}
    moe = mixture(c, c.moe_intermediate_size, experts_used(c, "num_experts"), of, scores=bias)

    def block(mlp: Group) -> Group:
        return Group(
            self_attn=attends,
            mlp=mlp,
            input_layernorm=RMSNorm(d),
            post_attention_layernorm=RMSNorm(d),
            pre_feedforward_layernorm=RMSNorm(d),
            post_feedforward_layernorm=RMSNorm(d),
        )

    return decoder(c, dense_and_sparse(c, 3, block(gated_mlp(d, c.intermediate_size)), block(moe)))
