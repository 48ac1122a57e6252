"""nanoGPT (Karpathy 2022): GPT-2 with nn.Linear, optional biases and a padded vocabulary."""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


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
def nanogpt(c: Config) -> nn.Model:
    c.require_divisible("n_embd", by="n_head")
    d, bias = c.n_embd, c.bias
    block = nn.Module(
        ln_1=nn.LayerNorm(d, bias=bias),
        attn=nn.Attention(
            nn.Heads(c.n_head, c.n_head, d / c.n_head, rotary=0, dropout=c.dropout > 0),
            c_attn=nn.Linear(d, 3 * d, bias=bias),
            c_proj=nn.Linear(d, d, bias=bias),
            resid_dropout=nn.Dropout(d, c.dropout),
        ),
        ln_2=nn.LayerNorm(d, bias=bias),
        mlp=nn.MLP(
            nn.FeedForward(d, 4 * d, "gelu"),
            c_fc=nn.Linear(d, 4 * d, bias=bias),
            c_proj=nn.Linear(4 * d, d, bias=bias),
            dropout=nn.Dropout(d, c.dropout),
        ),
    )
    return nn.Model(
        transformer=nn.Module(
            wte=nn.Embedding(c.vocab_size, d),
            wpe=nn.PositionEmbedding(c.block_size, d),
            drop=nn.Dropout(d, c.dropout),
            h=nn.Repeat(c.n_layer, block),
            ln_f=nn.LayerNorm(d, bias=bias),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )
