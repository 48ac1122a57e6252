"""Gemma 2: norms before and after each sublayer, capped scores and logits."""

from tallystick.architectures.kit import windows_of
from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import ATTENTION, FRAME, KEYS, MLP, each_layer, llama_like

NORMS = (
    Rule("model.layers.{}.input_layernorm.weight", "layers.{}.attention_norm.weight"),
    Rule("model.layers.{}.post_attention_layernorm.weight", "layers.{}.attention_out_norm.weight"),
    Rule("model.layers.{}.pre_feedforward_layernorm.weight", "layers.{}.mlp_norm.weight"),
    Rule("model.layers.{}.post_feedforward_layernorm.weight", "layers.{}.mlp_out_norm.weight"),
)


@family(
    "gemma2",
    (*FRAME, *ATTENTION, *MLP, *NORMS),
    **{**KEYS, "max_position_embeddings": 8192, "query_pre_attn_scalar": 256.0},
)
def gemma2(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation=c.hidden_activation,
        qkv_bias=c.attention_bias,
        output_bias=c.attention_bias,
        norm_place="both",
        norm_offset=1.0,
        norm_rounds_last=True,
        embedding_scale=int(c.hidden_size) ** 0.5,
        attention_scale=c.query_pre_attn_scalar**-0.5,
        attention_cap=c.attn_logit_softcapping or None,
        logit_cap=c.final_logit_softcapping or None,
        windows=each_layer(c, windows_of(c, ((c.sliding_window, 1), (None, 1)))),
    )
