"""BLOOM (BigScience 2022, "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model")."""

from tallystick.architectures._decoder import plain_mlp
from tallystick.architectures._siblings import OLDER
from tallystick.blueprint import (
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Repeat,
    architecture,
)


@architecture(
    "bloom",
    "BloomForCausalLM",
    siblings=OLDER,
    aliases={"n_embed": "hidden_size", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    vocab_size=250880,
    hidden_size=64,
    n_layer=2,
    n_head=8,
    tie_word_embeddings=True,
)
def bloom(c: Config) -> Model:
    c.require_divisible("hidden_size", by="n_head")
    d = c.hidden_size
    block = Group(
        input_layernorm=LayerNorm(d),
        self_attention=Attention(
            Heads(c.n_head, c.n_head, d / c.n_head, rotary=0, kernel="eager", handed_on=True, unmasked=True),
            query_key_value=Linear(d, 3 * d),
            dense=Linear(d, d),
        ),
        post_attention_layernorm=LayerNorm(d),
        mlp=plain_mlp(d, 4 * d, "bloom_gelu", "dense_h_to_4h", "dense_4h_to_h"),
    )
    return Model(
        transformer=Group(
            word_embeddings=Embedding(c.vocab_size, d),
            word_embeddings_layernorm=LayerNorm(d),
            h=Repeat(c.n_layer, block),
            ln_f=LayerNorm(d),
        ),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.word_embeddings.weight") if c.tie_word_embeddings else None,
    )
