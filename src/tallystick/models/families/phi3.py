"""Phi-3 and Phi-4: Llama with fused qkv and gate-up projections."""

from dataclasses import replace

from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig, Rope
from tallystick.models.families import family
from tallystick.models.families._llama_like import ATTENTION, FRAME, KEYS, MLP, NORMS, each_layer, llama_like, rope_of

FUSED = (
    Rule(
        "model.layers.{}.self_attn.qkv_proj.weight", tuple(f"layers.{{}}.attention.{one}_proj.weight" for one in "qkv")
    ),
    Rule(
        "model.layers.{}.mlp.gate_up_proj.weight", tuple(f"layers.{{}}.mlp.{one}_proj.weight" for one in ("gate", "up"))
    ),
)


@family(
    "phi3",
    (*FRAME, *FUSED, *ATTENTION, *MLP, *NORMS),
    **{
        **KEYS,
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "partial_rotary_factor": 1.0,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
    },
)
def phi3(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation=c.hidden_act,
        dropout=c.resid_pdrop,
        embedding_dropout=c.embd_pdrop,
        rope=_rope(c),
        windows=each_layer(c, ((c.sliding_window, 1),)),
    )


def _rope(c: Config) -> Rope:
    rope = rope_of(c, share=c.partial_rotary_factor)
    if rope.scaling.get("rope_type") == "yarn":  # transformers treats it as longrope in Phi-3
        return replace(rope, scaling={**rope.scaling, "rope_type": "longrope"})
    return rope
