"""The decoder of Blenderbot 90M: BART's.

Source: Roller et al. 2020, "Recipes for building an open-domain chatbot".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "blenderbot-small",
    "BlenderbotSmallForCausalLM",
    variants=whole(8, 2048, 16, classifies=False),
    aliases={"hidden_size": "d_model"},
    vocab_size=50265,
    max_position_embeddings=512,
    decoder_layers=8,
    decoder_ffn_dim=2048,
    decoder_attention_heads=16,
    d_model=512,
    tie_word_embeddings=True,
)
def blenderbot_small(c: Config) -> nn.Model:
    return beside_encoder(c, learned(c, offset=0), embedding_norm=True)
