"""Qwen2 and Qwen2.5: Llama with biases on queries, keys and values."""

from tallystick.architectures.kit import late_windows
from tallystick.core.config import Config
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import KEYS, RULES, each_layer, llama_like


@family("qwen2", RULES, **{**KEYS, "max_position_embeddings": 32768})
def qwen2(c: Config) -> DecoderConfig:
    return llama_like(c, activation=c.hidden_act, qkv_bias=True, windows=each_layer(c, late_windows(c)))
