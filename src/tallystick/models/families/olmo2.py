"""OLMo 2: norms on sublayer outputs; query and key norms over all heads at once."""

from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import ATTENTION, FRAME, KEYS, MLP, llama_like

NORMS = (
    Rule("model.layers.{}.post_attention_layernorm.weight", "layers.{}.attention_out_norm.weight"),
    Rule("model.layers.{}.post_feedforward_layernorm.weight", "layers.{}.mlp_out_norm.weight"),
)


@family("olmo2", (*FRAME, *ATTENTION, *MLP, *NORMS), **{**KEYS, "rms_norm_eps": 1e-5})
def olmo2(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation=c.hidden_act,
        qkv_bias=c.attention_bias,
        output_bias=c.attention_bias,
        qk_norm="all",
        norm_place="after",
        norm_rounds_last=True,
    )
