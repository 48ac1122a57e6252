"""Pegasus's decoder: BART's, with pre-norms and sinusoidal positions.

Source: Zhang et al. 2019, "PEGASUS: Pre-training with Extracted Gap-sentences".
"""

from tallystick.architectures.kit.bart import beside_encoder, sinusoidal
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "pegasus",
    "PegasusForCausalLM",
    variants=whole(12, 4096, 16, classifies=False),
    aliases={"hidden_size": "d_model"},
    vocab_size=50265,
    max_position_embeddings=1024,
    decoder_layers=12,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    tie_word_embeddings=True,
)
def pegasus(c: Config) -> nn.Model:
    return beside_encoder(c, sinusoidal(c), final_norm=True)
