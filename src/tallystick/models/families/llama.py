"""Llama 1, 2 and 3: RMSNorm, RoPE and gated MLPs."""

from tallystick.core.config import Config
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import KEYS, RULES, llama_like


@family("llama", RULES, **KEYS)
def llama(c: Config) -> DecoderConfig:
    return llama_like(
        c, activation=c.hidden_act, qkv_bias=c.attention_bias, output_bias=c.attention_bias, mlp_bias=c.mlp_bias
    )
