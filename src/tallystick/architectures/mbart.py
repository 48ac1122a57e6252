"""mBART's decoder: BART's, with pre-norms and a final norm.

Source: Liu et al. 2020, "Multilingual Denoising Pre-training for Neural Machine Translation".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "mbart",
    "MBartForCausalLM",
    variants=whole(12, 4096, 16),
    aliases={"hidden_size": "d_model"},
    vocab_size=50265,
    max_position_embeddings=1024,
    decoder_layers=12,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    tie_word_embeddings=True,
)
def mbart(c: Config) -> nn.Model:
    return beside_encoder(c, learned(c), embedding_norm=True, final_norm=True)
