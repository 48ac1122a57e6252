"""The GPT of the book "Build a Large Language Model (From Scratch)" (Raschka 2024), chapter 4."""

from tallystick import anatomy
from tallystick.architectures._decoder import refuse_keys
from tallystick.blueprint import (
    MLP,
    REQUIRED,
    Attention,
    Buffer,
    Config,
    Dropout,
    Embedding,
    Feed,
    Group,
    Head,
    Heads,
    Linear,
    Model,
    Norm,
    PositionEmbedding,
    Repeat,
    Tensor,
    architecture,
)


@architecture(
    "book_gpt",
    "GPTModel",
    running={"drop_rate": 0.1},
    vocab_size=REQUIRED,
    context_length=REQUIRED,
    emb_dim=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    qkv_bias=False,
    tie_word_embeddings=False,  # the book builds a head of its own, and ties nothing
)
def book_gpt(c: Config) -> Model:
    refuse_keys(c, "the book's GPT", "n_kv_groups", "head_dim", "latent_dim", "num_experts")
    c.require_divisible("emb_dim", by="n_heads")
    d, bias = c.emb_dim, c.qkv_bias
    norm = Norm(anatomy.Norm("centred", d), scale=Tensor((d,), "norm"), shift=Tensor((d,), "norm"))
    block = Group(
        att=Attention(
            Heads(
                c.n_heads,
                c.n_heads,
                d / c.n_heads,
                rotary=0,
                kernel="eager",  # the book writes it out
                softmax="own",
                dropout=c.drop_rate > 0,
                stored_mask=c.context_length,
            ),
            mask=Buffer(c.context_length, c.context_length),
            W_query=Linear(d, d, bias=bias),
            W_key=Linear(d, d, bias=bias),
            W_value=Linear(d, d, bias=bias),
            out_proj=Linear(d, d),
        ),
        ff=MLP(
            Feed(d, 4 * d, "gelu_new"),
            layers=Group(**{"0": Linear(d, 4 * d), "2": Linear(4 * d, d)}),  # 1 is the GELU between them
        ),
        norm1=norm,
        norm2=norm,
        drop_shortcut=Dropout(2 * d, c.drop_rate),  # after the attention, and after the MLP
    )
    return Model(
        tok_emb=Embedding(c.vocab_size, d),
        pos_emb=PositionEmbedding(c.context_length, d),
        drop_emb=Dropout(d, c.drop_rate),
        trf_blocks=Repeat(c.n_layers, block),
        final_norm=norm,
        out_head=Head(d, c.vocab_size),
        tie=("out_head.weight", "tok_emb.weight") if c.tie_word_embeddings else None,
    )
