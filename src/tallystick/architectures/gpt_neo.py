"""GPT-Neo: GPT-2 with local attention in every other layer.

Source: Black et al. 2021, "GPT-Neo: Large Scale Autoregressive Language Modeling with
Mesh-Tensorflow".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "gpt_neo",
    "GPTNeoForCausalLM",
    variants=OLDER,
    aliases={"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
    running={
        "activation_function": "gelu_new",
        "embed_dropout": 0.0,
        "attention_dropout": 0.0,
        "resid_dropout": 0.0,
    },
    vocab_size=50257,
    max_position_embeddings=2048,
    hidden_size=2048,
    intermediate_size=optional(),
    num_layers=24,
    num_heads=16,
    tie_word_embeddings=True,
)
def gpt_neo(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_heads")
    d, heads = c.hidden_size, c.num_heads
    # Local attention is only a mask: all scores are computed, and all positions are cached.
    runs = nn.Heads(
        heads,
        heads,
        d / heads,
        rotary=0,
        dropout=c.attention_dropout > 0,
    )
    block = nn.Module(
        ln_1=nn.LayerNorm(d),
        attn=nn.Module(
            attention=nn.Attention(
                runs,
                k_proj=nn.Linear(d, d, bias=False),
                v_proj=nn.Linear(d, d, bias=False),
                q_proj=nn.Linear(d, d, bias=False),
                out_proj=nn.Linear(d, d),
                resid_dropout=nn.Dropout(d, c.resid_dropout),
            )
        ),
        ln_2=nn.LayerNorm(d),
        mlp=kit.plain_mlp(d, c.intermediate_size or 4 * d, c.activation_function, "c_fc", "c_proj"),
        dropout=nn.Dropout(d, c.resid_dropout),
    )
    return kit.transformer(
        c, d, block, depth="num_layers", positions="max_position_embeddings", dropout=c.embed_dropout
    )
