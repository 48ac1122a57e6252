"""nanoGPT (Karpathy 2022): GPT-2 with plain linear layers, biases by choice, and a vocabulary padded to 64s."""

from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Dropout,
    Embedding,
    Feed,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    PositionEmbedding,
    Repeat,
    architecture,
)


@architecture(
    "nanogpt",
    "GPT",
    running={"dropout": 0.0},
    vocab_size=50304,
    block_size=1024,
    n_embd=768,
    n_layer=12,
    n_head=12,
    bias=True,
    tie_word_embeddings=True,
)
def nanogpt(c: Config) -> Model:
    c.require_divisible("n_embd", by="n_head")
    d, bias = c.n_embd, c.bias
    block = Group(
        ln_1=LayerNorm(d, bias=bias),
        attn=Attention(
            Heads(c.n_head, c.n_head, d / c.n_head, rotary=0, softmax="own", dropout=c.dropout > 0),
            c_attn=Linear(d, 3 * d, bias=bias),
            c_proj=Linear(d, d, bias=bias),
            resid_dropout=Dropout(d, c.dropout),
        ),
        ln_2=LayerNorm(d, bias=bias),
        mlp=MLP(
            Feed(d, 4 * d, "gelu"),
            c_fc=Linear(d, 4 * d, bias=bias),
            c_proj=Linear(4 * d, d, bias=bias),
            dropout=Dropout(d, c.dropout),
        ),
    )
    return Model(
        transformer=Group(
            wte=Embedding(c.vocab_size, d),
            wpe=PositionEmbedding(c.block_size, d),
            drop=Dropout(d, c.dropout),
            h=Repeat(c.n_layer, block),
            ln_f=LayerNorm(d, bias=bias),
        ),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )
