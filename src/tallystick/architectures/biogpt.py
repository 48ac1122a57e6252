"""BioGPT (Luo et al. 2022, "BioGPT: Generative Pre-trained Transformer for Biomedical Text Generation and Mining")."""

from tallystick.architectures._bart import OFFSET, heads, layer
from tallystick.architectures._siblings import OLDER
from tallystick.blueprint import (
    Config,
    Embedding,
    Group,
    Head,
    LayerNorm,
    Model,
    PositionEmbedding,
    Repeat,
    architecture,
)


@architecture(
    "biogpt",
    "BioGptForCausalLM",
    siblings=OLDER,
    vocab_size=42384,
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    max_position_embeddings=1024,
    tie_word_embeddings=True,
)
def biogpt(c: Config) -> Model:
    d = c.hidden_size
    block = layer(d, heads(c, "hidden_size", "num_attention_heads"), c.intermediate_size, None)
    return Model(
        biogpt=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            embed_positions=PositionEmbedding(c.max_position_embeddings + OFFSET, d),
            layers=Repeat(c.num_hidden_layers, block),
            layer_norm=LayerNorm(d),
        ),
        output_projection=Head(d, c.vocab_size),
        tie=("output_projection.weight", "biogpt.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
