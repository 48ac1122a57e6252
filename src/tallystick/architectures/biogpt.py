"""BioGPT: blocks of a BART decoder without cross-attention.

Source: Luo et al. 2022, "BioGPT: Generative Pre-trained Transformer for Biomedical Text
Generation and Mining".
"""

from tallystick.architectures.kit.bart import OFFSET, heads, layer
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "biogpt",
    "BioGptForCausalLM",
    variants=OLDER,
    vocab_size=42384,
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    max_position_embeddings=1024,
    tie_word_embeddings=True,
)
def biogpt(c: Config) -> nn.Model:
    d = c.hidden_size
    block = layer(d, heads(c, "hidden_size", "num_attention_heads"), c.intermediate_size, None)
    return nn.Model(
        biogpt=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            embed_positions=nn.PositionEmbedding(c.max_position_embeddings + OFFSET, d),
            layers=nn.Repeat(c.num_hidden_layers, block),
            layer_norm=nn.LayerNorm(d),
        ),
        output_projection=nn.Head(d, c.vocab_size),
        tie=("output_projection.weight", "biogpt.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
