"""GPT-BigCode: SantaCoder and StarCoder, with multi-query attention.

Source: Li et al. 2023, "StarCoder: may the source be with you!".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "gpt_bigcode",
    "GPTBigCodeForCausalLM",
    variants=OLDER,
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
    n_inner=optional(),
    multi_query=True,
    add_cross_attention=False,
    tie_word_embeddings=True,
)
def gpt_bigcode(c: Config) -> nn.Model:
    c.require_divisible("n_embd", by="n_head")
    d, cross = c.n_embd, c.add_cross_attention
    if cross and c.multi_query:
        raise c.refuse("add_cross_attention needs multi_query = false")
    size = d / c.n_head
    keys = 1 if c.multi_query else c.n_head
    block = nn.Module(
        ln_1=nn.LayerNorm(d),
        attn=nn.Attention(
            nn.Heads(c.n_head, keys, size, rotary=0, dropout=c.attn_pdrop > 0),
            c_attn=nn.Linear(d, d + 2 * keys * size),
            c_proj=nn.Linear(d, d),
            resid_dropout=nn.Dropout(d, c.resid_pdrop),
        ),
        ln_2=nn.LayerNorm(d),
        # Cross-attention: keys and values from encoder states, queries from the decoder.
        crossattention=nn.Attention(c_attn=nn.Linear(d, 2 * d), q_attn=nn.Linear(d, d), c_proj=nn.Linear(d, d))
        if cross
        else None,
        ln_cross_attn=nn.LayerNorm(d) if cross else None,
        mlp=kit.plain_mlp(d, c.n_inner or 4 * d, c.activation_function, "c_fc", "c_proj"),
        dropout=nn.Dropout(d, c.resid_pdrop),
    )
    return kit.transformer(c, d, block, depth="n_layer", positions="n_positions", dropout=c.embd_pdrop)
