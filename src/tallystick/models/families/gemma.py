"""Gemma: scaled embeddings, and norm scales stored around zero."""

from tallystick.core.config import Config
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import KEYS, RULES, llama_like


@family("gemma", RULES, **{**KEYS, "max_position_embeddings": 8192})
def gemma(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation="gelu_pytorch_tanh" if c.hidden_act == "gelu" else c.hidden_act,  # early configs state the wrong one
        qkv_bias=c.attention_bias,
        output_bias=c.attention_bias,
        norm_offset=1.0,
        norm_rounds_last=True,
        embedding_scale=int(c.hidden_size) ** 0.5,
    )
