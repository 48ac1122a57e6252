"""BLOOM: ALiBi positions and a norm after the embedding.

Source: BigScience 2022, "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "bloom",
    "BloomForCausalLM",
    variants=OLDER,
    aliases={"n_embed": "hidden_size", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    vocab_size=250880,
    hidden_size=64,
    n_layer=2,
    n_head=8,
    tie_word_embeddings=True,
)
def bloom(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="n_head")
    d = c.hidden_size
    block = nn.Module(
        input_layernorm=nn.LayerNorm(d),
        self_attention=nn.Attention(
            nn.Heads(c.n_head, c.n_head, d / c.n_head, rotary=0),
            query_key_value=nn.Linear(d, 3 * d),
            dense=nn.Linear(d, d),
        ),
        post_attention_layernorm=nn.LayerNorm(d),
        mlp=kit.plain_mlp(d, 4 * d, "bloom_gelu", "dense_h_to_4h", "dense_4h_to_h"),
    )
    return nn.Model(
        transformer=nn.Module(
            word_embeddings=nn.Embedding(c.vocab_size, d),
            word_embeddings_layernorm=nn.LayerNorm(d),
            h=nn.Repeat(c.n_layer, block),
            ln_f=nn.LayerNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.word_embeddings.weight") if c.tie_word_embeddings else None,
    )
