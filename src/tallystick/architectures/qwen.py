"""Qwen 1: one fused projection for queries, keys and values, under GPT-2's names.

Source: Bai et al. 2023, "Qwen Technical Report".
"""

from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import floor
from tallystick.core.registry import Config, architecture


@architecture(
    "qwen",
    "QWenLMHeadModel",
    running={"emb_dropout_prob": 0.0, "attn_dropout_prob": 0.0},
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=22016,
    num_hidden_layers=32,
    num_attention_heads=32,
    kv_channels=128,
    no_bias=True,
    tie_word_embeddings=False,
)
def qwen(c: Config) -> nn.Model:
    d, many, size, bias = c.hidden_size, c.num_attention_heads, c.kv_channels, not c.no_bias
    inner = floor(c.intermediate_size, 2)  # the key has the width of gate and value together
    block = nn.Module(
        ln_1=nn.RMSNorm(d),
        attn=nn.Attention(
            nn.Heads(many, many, size, dropout=c.attn_dropout_prob > 0),
            c_attn=nn.Linear(d, 3 * many * size),
            c_proj=nn.Linear(d, many * size, bias=bias),
        ),
        ln_2=nn.RMSNorm(d),
        mlp=nn.MLP(
            nn.FeedForward(d, inner, "silu", gated=True),
            w1=nn.Linear(d, inner, bias=bias),
            w2=nn.Linear(d, inner, bias=bias),
            c_proj=nn.Linear(inner, d, bias=bias),
        ),
    )
    return nn.Model(
        transformer=nn.Module(
            wte=nn.Embedding(c.vocab_size, d),
            drop=nn.Dropout(d, c.emb_dropout_prob),
            h=nn.Repeat(c.num_hidden_layers, block),
            ln_f=nn.RMSNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )
