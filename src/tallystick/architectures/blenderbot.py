"""Blenderbot's decoder: BART's, with pre-norms.

Source: Roller et al. 2020, "Recipes for building an open-domain chatbot".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "blenderbot",
    "BlenderbotForCausalLM",
    variants=whole(2, 10240, 32, classifies=False),
    aliases={"hidden_size": "d_model"},
    vocab_size=8008,
    max_position_embeddings=128,
    decoder_layers=24,
    decoder_ffn_dim=10240,
    decoder_attention_heads=32,
    d_model=2560,
    tie_word_embeddings=True,
)
def blenderbot(c: Config) -> nn.Model:
    return beside_encoder(c, learned(c, offset=0), final_norm=True)
