"""Whisper's decoder: BART's, with key projections without a bias.

Source: Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision".
"""

from tallystick.architectures.kit.bart import beside_encoder
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "whisper",
    "WhisperForCausalLM",
    variants={},
    aliases={"hidden_size": "d_model"},
    vocab_size=51865,
    decoder_layers=4,
    decoder_attention_heads=6,
    decoder_ffn_dim=1536,
    d_model=384,
    max_target_positions=448,
    tie_word_embeddings=True,
)
def whisper(c: Config) -> nn.Model:
    positions = nn.PositionEmbedding(c.max_target_positions, c.d_model)
    return beside_encoder(c, positions, final_norm=True, key_bias=False, head="proj_out")
