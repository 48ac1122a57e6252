"""PLBART's decoder (Ahmad et al. 2021, "Unified Pre-training for Program Understanding and Generation"): BART's."""

from tallystick.architectures._bart import beside_encoder, learned
from tallystick.architectures._encoder_decoder import whole
from tallystick.blueprint import Config, Model, architecture


@architecture(
    "plbart",
    "PLBartForCausalLM",
    siblings=whole(6, 3072, 12),
    aliases={"hidden_size": "d_model"},
    vocab_size=50005,
    max_position_embeddings=1024,
    decoder_layers=6,
    decoder_ffn_dim=3072,
    decoder_attention_heads=12,
    d_model=768,
    tie_word_embeddings=True,
)
def plbart(c: Config) -> Model:
    return beside_encoder(c, learned(c), embedding_norm=True)
