"""Qwen3: Llama with query and key norms per head."""

from tallystick.architectures.kit import late_windows
from tallystick.core.config import Config
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import KEYS, RULES, each_layer, llama_like


@family("qwen3", RULES, **{**KEYS, "max_position_embeddings": 32768})
def qwen3(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation=c.hidden_act,
        qkv_bias=c.attention_bias,
        output_bias=c.attention_bias,
        qk_norm="head",
        windows=each_layer(c, late_windows(c)),
    )
