"""GPT-BigCode: SantaCoder and StarCoder (Li et al. 2023, "StarCoder: may the source be with you!"), one key for all queries."""

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
    "gpt_bigcode",
    "GPTBigCodeForCausalLM",
    siblings=OLDER,
    aliases={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    running={"activation_function": "gelu_pytorch_tanh", "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1},
    vocab_size=50257,
    n_positions=1024,
    n_embd=768,
    n_layer=12,
    n_head=12,
    n_inner=maybe(),
    multi_query=True,
    add_cross_attention=False,
    tie_word_embeddings=True,
)
def gpt_bigcode(c: Config) -> Model:
    c.require_divisible("n_embd", by="n_head")
    d, cross = c.n_embd, c.add_cross_attention
    if cross and c.multi_query:
        raise c.refuse("add_cross_attention needs multi_query = false: no cross-attention shares one key")
    size = d / c.n_head
    keys = 1 if c.multi_query else c.n_head
    block = Group(
        ln_1=LayerNorm(d),
        attn=Attention(
            Heads(c.n_head, keys, size, rotary=0, dropout=c.attn_pdrop > 0, held=True),
            c_attn=Linear(d, d + 2 * keys * size),
            c_proj=Linear(d, d),
            resid_dropout=Dropout(d, c.resid_pdrop),
        ),
        ln_2=LayerNorm(d),
        # As a decoder beside an encoder: keys and values come from there, queries from here.
        crossattention=Attention(c_attn=Linear(d, 2 * d), q_attn=Linear(d, d), c_proj=Linear(d, d)) if cross else None,
        ln_cross_attn=LayerNorm(d) if cross else None,
        mlp=plain_mlp(d, c.n_inner or 4 * d, c.activation_function, "c_fc", "c_proj"),
        dropout=Dropout(d, c.resid_pdrop),
    )
    return transformer(c, d, block, depth="n_layer", positions="n_positions", dropout=c.embd_pdrop)
