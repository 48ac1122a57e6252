"""Mistral: Llama with a sliding window."""

from tallystick.core.config import Config
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import KEYS, RULES, each_layer, llama_like


@family("mistral", RULES, **{**KEYS, "max_position_embeddings": 131072})
def mistral(c: Config) -> DecoderConfig:
    return llama_like(c, activation=c.hidden_act, windows=each_layer(c, ((c.sliding_window, 1),)))
