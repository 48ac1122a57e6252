"""Marian's decoder: BART's, with sinusoidal positions.

Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++".
"""

from tallystick.architectures.kit.bart import beside_encoder, sinusoidal
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "marian",
    "MarianForCausalLM",
    variants={},
    aliases={"hidden_size": "d_model"},
    vocab_size=58101,
    max_position_embeddings=1024,
    decoder_layers=12,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    decoder_vocab_size=optional(),
    tie_word_embeddings=True,
)
def marian(c: Config) -> nn.Model:
    return beside_encoder(c, sinusoidal(c), vocabulary=c.decoder_vocab_size)
