"""Beam (Reflection AI 2026): gated sliding-window attention, pre- and post-norms, MoE."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

LAYER_KINDS = ("sliding_attention", "full_attention")


@architecture(
    "beam",
    "BeamForCausalLM",
    running={"sliding_window": nonnegative(512, nullable=True), "layer_types": None},
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
def beam(c: Config) -> nn.Model:
    d, of, last = c.hidden_size, c.num_experts, int(c.num_hidden_layers) - 1
    kinds = kit.listed(c, "layer_types", LAYER_KINDS, lambda layer: LAYER_KINDS[layer == last or (layer + 1) % 6 == 0])
    runs = kit.heads(c, windows=kit.in_runs((kind == LAYER_KINDS[0] for kind in kinds), c.sliding_window, None))
    attends = kit.attention(
        c,
        runs,
        bias=c.attention_bias,
        gate_proj=nn.Linear(d, runs.queries * runs.size, bias=False),
        gate_bias=nn.Parameter((runs.queries,)),
        **kit.head_norms(runs),
    )
    bias = {"e_score_correction_bias": nn.Buffer(of)}
    moe = kit.mixture(c, c.moe_intermediate_size, kit.experts_used(c, "num_experts"), of, scores=bias)

    def block(mlp: nn.Module) -> nn.Module:
        return nn.Module(
            self_attn=attends,
            mlp=mlp,
            input_layernorm=nn.RMSNorm(d),
            post_attention_layernorm=nn.RMSNorm(d),
            pre_feedforward_layernorm=nn.RMSNorm(d),
            post_feedforward_layernorm=nn.RMSNorm(d),
        )

    return kit.decoder(c, kit.dense_and_sparse(c, 3, block(kit.gated_mlp(d, c.intermediate_size)), block(moe)))
