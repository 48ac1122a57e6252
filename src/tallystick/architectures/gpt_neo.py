"""GPT-Neo (Black et al. 2021, "GPT-Neo: Large Scale Autoregressive Language Modeling with Mesh-Tensorflow")."""

from tallystick.architectures._decoder import plain_mlp, transformer
from tallystick.architectures._siblings import OLDER
from tallystick.blueprint import (
    Attention,
    Config,
    Dropout,
    Group,
    Heads,
    LayerNorm,
    Linear,
    Model,
    architecture,
    maybe,
)


@architecture(
    "gpt_neo",
    "GPTNeoForCausalLM",
    siblings=OLDER,
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
    intermediate_size=maybe(),
    num_layers=24,
    num_heads=16,
    tie_word_embeddings=True,
)
def gpt_neo(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_heads")
    d, heads = c.hidden_size, c.num_heads
    # Where a layer sees a window, that is a mask over all positions: as many are computed, and cached.
    runs = Heads(
        heads,
        heads,
        d / heads,
        rotary=0,
        softmax="products",
        handed_on=True,
        held=True,
        dropout=c.attention_dropout > 0,
    )
    block = Group(
        ln_1=LayerNorm(d),
        attn=Group(
            attention=Attention(
                runs,
                k_proj=Linear(d, d, bias=False),
                v_proj=Linear(d, d, bias=False),
                q_proj=Linear(d, d, bias=False),
                out_proj=Linear(d, d),
                resid_dropout=Dropout(d, c.resid_dropout),
            )
        ),
        ln_2=LayerNorm(d),
        mlp=plain_mlp(d, c.intermediate_size or 4 * d, c.activation_function, "c_fc", "c_proj"),
        dropout=Dropout(d, c.resid_dropout),
    )
    return transformer(c, d, block, depth="num_layers", positions="max_position_embeddings", dropout=c.embed_dropout)
