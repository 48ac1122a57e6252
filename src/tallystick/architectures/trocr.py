"""TrOCR's decoder: BART's, with cross-attention to an encoder of any width.

Source: Li et al. 2021, "TrOCR: Transformer-based Optical Character Recognition".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "trocr",
    "TrOCRForCausalLM",
    variants={},
    aliases={
        "hidden_size": "d_model",
        "num_attention_heads": "decoder_attention_heads",
        "num_hidden_layers": "decoder_layers",
    },
    vocab_size=50265,
    d_model=1024,
    decoder_layers=12,
    decoder_attention_heads=16,
    decoder_ffn_dim=4096,
    max_position_embeddings=512,
    use_learned_position_embeddings=True,
    layernorm_embedding=True,
    cross_attention_hidden_size=optional(),
    tie_word_embeddings=True,
)
def trocr(c: Config) -> nn.Model:
    positions = learned(c) if c.use_learned_position_embeddings else None  # sinusoidal positions are not stored
    norm, reads = c.layernorm_embedding, c.cross_attention_hidden_size
    return beside_encoder(c, positions, embedding_norm=norm, reads=reads, head="output_projection")
