"""BART's decoder; its variants add the encoder.

Source: Lewis et al. 2019, "BART: Denoising Sequence-to-Sequence Pre-training".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "bart",
    "BartForCausalLM",
    variants=whole(12, 4096, 16, count=3),
    aliases={"hidden_size": "d_model"},
    vocab_size=50265,
    max_position_embeddings=1024,
    decoder_layers=12,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    tie_word_embeddings=True,
)
def bart(c: Config) -> nn.Model:
    return beside_encoder(c, learned(c), embedding_norm=True)
