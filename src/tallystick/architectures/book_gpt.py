"""The GPT of a book's chapter 4.

Source: Raschka 2024, "Build a Large Language Model (From Scratch)".
"""

from tallystick.architectures import kit
from tallystick.core import anatomy
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture


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
    tie_word_embeddings=False,  # the book builds a separate head and does not tie it
)
def book_gpt(c: Config) -> nn.Model:
    kit.refuse_keys(c, "the book's GPT", "n_kv_groups", "head_dim", "latent_dim", "num_experts")
    c.require_divisible("emb_dim", by="n_heads")
    d, bias = c.emb_dim, c.qkv_bias
    norm = nn.Norm(anatomy.Norm("centred", d), scale=nn.Parameter((d,), "norm"), shift=nn.Parameter((d,), "norm"))
    block = nn.Module(
        att=nn.Attention(
            nn.Heads(
                c.n_heads,
                c.n_heads,
                d / c.n_heads,
                rotary=0,
                dropout=c.drop_rate > 0,
            ),
            mask=nn.Buffer(c.context_length, c.context_length),
            W_query=nn.Linear(d, d, bias=bias),
            W_key=nn.Linear(d, d, bias=bias),
            W_value=nn.Linear(d, d, bias=bias),
            out_proj=nn.Linear(d, d),
        ),
        ff=nn.MLP(
            nn.FeedForward(d, 4 * d, "gelu_new"),
            layers=nn.Module(**{"0": nn.Linear(d, 4 * d), "2": nn.Linear(4 * d, d)}),  # "1" is the GELU
        ),
        norm1=norm,
        norm2=norm,
        drop_shortcut=nn.Dropout(2 * d, c.drop_rate),  # after attention and after the MLP
    )
    return nn.Model(
        tok_emb=nn.Embedding(c.vocab_size, d),
        pos_emb=nn.PositionEmbedding(c.context_length, d),
        drop_emb=nn.Dropout(d, c.drop_rate),
        trf_blocks=nn.Repeat(c.n_layers, block),
        final_norm=norm,
        out_head=nn.Head(d, c.vocab_size),
        tie=("out_head.weight", "tok_emb.weight") if c.tie_word_embeddings else None,
    )
