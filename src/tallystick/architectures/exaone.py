"""EXAONE 3.0, 3.5 and Deep: Llama's block under GPT-2's names.

Source: LG AI Research 2024, "EXAONE 3.5: Series of Large Language Models for Real-world Use Cases".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "exaone",
    "ExaoneForCausalLM",
    aliases={"num_hidden_layers": "num_layers"},
    running={"activation_function": "silu", "embed_dropout": 0.0, "attention_dropout": 0.0},
    vocab_size=102400,
    hidden_size=2048,
    intermediate_size=optional(),
    num_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    tie_word_embeddings=True,
)
def exaone(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    inner = c.intermediate_size or 4 * d
    heads = kit.heads(c, d / c.num_attention_heads, dropout=c.attention_dropout > 0)
    block = nn.Module(
        ln_1=nn.RMSNorm(d),
        attn=nn.Module(attention=kit.attention(c, heads, output="out_proj")),
        ln_2=nn.RMSNorm(d),
        mlp=nn.MLP(
            nn.FeedForward(d, inner, c.activation_function, gated=True),
            c_fc_0=nn.Linear(d, inner, bias=False),
            c_fc_1=nn.Linear(d, inner, bias=False),
            c_proj=nn.Linear(inner, d, bias=False),
        ),
    )
    return nn.Model(
        transformer=nn.Module(
            wte=nn.Embedding(c.vocab_size, d),
            drop=nn.Dropout(d, c.embed_dropout),
            h=nn.Repeat(c.num_layers, block),
            ln_f=nn.RMSNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )
