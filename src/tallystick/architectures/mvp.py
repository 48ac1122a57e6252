"""MVP's decoder (Tang et al. 2022, "MVP: Multi-task Supervised Pre-training for Natural Language Generation"): BART's, without prompts."""

from tallystick.architectures._bart import beside_encoder, learned
from tallystick.blueprint import Config, Model, architecture


@architecture(
    "mvp",
    "MvpForCausalLM",
    scored=False,
    aliases={"hidden_size": "d_model"},
    vocab_size=50267,
    max_position_embeddings=1024,
    decoder_layers=12,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    tie_word_embeddings=True,
)
def mvp(c: Config) -> Model:
    return beside_encoder(c, learned(c), embedding_norm=True)
