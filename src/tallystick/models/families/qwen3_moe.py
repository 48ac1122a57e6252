"""Qwen3-MoE: Qwen3 with a mixture of experts."""

from tallystick.architectures.qwen3_moe import dense_layers
from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig, Experts
from tallystick.models.families import family
from tallystick.models.families._llama_like import KEYS, RULES, each_layer, llama_like
from tallystick.models.families.mixtral import HELD

PUBLISHED = tuple(
    Rule(f"model.layers.{{}}.mlp.experts.{{}}.{one}_proj.weight", f"layers.{{}}.mlp.experts.{one}_proj")
    for one in ("gate", "up", "down")
)


@family("qwen3_moe", (*RULES, *PUBLISHED, *HELD), **{**KEYS, "max_position_embeddings": 32768, "norm_topk_prob": False})
def qwen3_moe(c: Config) -> DecoderConfig:
    experts = None
    if c.num_experts:
        experts = Experts(
            int(c.num_experts),
            int(c.num_experts_per_tok),
            int(c.moe_intermediate_size),
            normalised=c.norm_topk_prob,
        )
    return llama_like(
        c,
        activation=c.hidden_act,
        qkv_bias=c.attention_bias,
        output_bias=c.attention_bias,
        qk_norm="head",
        experts=experts,
        dense_layers=dense_layers(c) if experts else frozenset(),
        windows=each_layer(c, ((c.sliding_window if c.use_sliding_window else None, 1),)),
    )
