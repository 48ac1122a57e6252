"""nanoGPT: GPT-2 with plain linear layers, exact GELU and optional biases."""

from tallystick.core.config import Config
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families.gpt2 import RULES


@family("nanogpt", tuple(rule._replace(transposed=False) for rule in RULES), dropout=0.0)
def nanogpt(c: Config) -> DecoderConfig:
    return DecoderConfig(
        vocab_size=c.vocab_size,
        width=c.n_embd,
        layers=c.n_layer,
        heads=c.n_head,
        inner=4 * c.n_embd,
        context=c.block_size,
        norm="layer",
        norm_bias=c.bias,
        norm_eps=1e-5,
        rope=None,
        qkv_bias=c.bias,
        output_bias=c.bias,
        activation="gelu",
        gated=False,
        mlp_bias=c.bias,
        tied=c.tie_word_embeddings,
        dropout=c.dropout,
        embedding_dropout=c.dropout,
        attention_dropout=c.dropout,
    )
