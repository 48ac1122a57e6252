"""BigBird-Pegasus's decoder: BART's, with an untied LM head.

Source: Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


def _attention(c: Config) -> nn.Attention:
    """The encoder's attention, BigBird's: sparse, with random blocks."""
    d = c.d_model
    reads = {name: nn.Linear(d, d, bias=c.use_bias) for name in ("query", "key", "value")}
    return nn.Attention(self=nn.Module(**reads), output=nn.Linear(d, d, bias=c.use_bias))


@architecture(
    "bigbird_pegasus",
    "BigBirdPegasusForCausalLM",
    variants=whole(16, 4096, 16, attention=_attention, more={"tie_word_embeddings": True}),
    aliases={"hidden_size": "d_model"},
    vocab_size=96103,
    max_position_embeddings=4096,
    decoder_layers=16,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    use_bias=False,
)
def bigbird_pegasus(c: Config) -> nn.Model:
    return beside_encoder(c, learned(c, offset=0), embedding_norm=True, bias=c.use_bias, tied=False)
