"""Mixtral: Mistral with a mixture of experts."""

from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig, Experts
from tallystick.models.families import family
from tallystick.models.families._llama_like import ATTENTION, FRAME, KEYS, NORMS, each_layer, llama_like

PUBLISHED = (
    Rule("model.layers.{}.block_sparse_moe.gate.weight", "layers.{}.mlp.router.weight"),
    Rule("model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "layers.{}.mlp.experts.gate_proj"),
    Rule("model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "layers.{}.mlp.experts.up_proj"),
    Rule("model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "layers.{}.mlp.experts.down_proj"),
)
HELD = (  # as transformers 5 holds them in memory
    Rule("model.layers.{}.mlp.gate.weight", "layers.{}.mlp.router.weight"),
    Rule(
        "model.layers.{}.mlp.experts.gate_up_proj",
        ("layers.{}.mlp.experts.gate_proj", "layers.{}.mlp.experts.up_proj"),
        along=1,
    ),
    Rule("model.layers.{}.mlp.experts.down_proj", "layers.{}.mlp.experts.down_proj"),
)


@family(
    "mixtral",
    (*FRAME, *ATTENTION, *NORMS, *PUBLISHED, *HELD),
    **{**KEYS, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0},
)
def mixtral(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation=c.hidden_act,
        experts=Experts(int(c.num_local_experts), int(c.num_experts_per_tok), int(c.intermediate_size)),
        windows=each_layer(c, ((c.sliding_window, 1),)),
    )
