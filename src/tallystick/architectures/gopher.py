"""Gopher and Chinchilla (Rae et al. 2021; Hoffmann et al. 2022): RMSNorm, relative positions.

Sources: "Scaling Language Models: Methods, Analysis & Insights from Training Gopher", section 3.1;
"Training Compute-Optimal Large Language Models", table A9, whose 50 models come out to the last
million. DeepMind released no checkpoint, so the tensor names are ours.

Relative positions as in Transformer-XL (Dai et al. 2019, section 3.3): a fifth matrix in each
attention projects them, and two vectors, u and v, stand in for the query's position. Without
these Chinchilla has 64.7B parameters. The papers do not say which layers have biases. Those here
make all 50 counts; the vectors are 0.01% of Chinchilla.
"""

from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional


@architecture(
    "gopher",
    vocab_size=32000,
    d_model=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    kv_size=128,  # of one head, the papers' "key/value size"
    ffw_size=optional(),
    tie_word_embeddings=True,
)
def gopher(c: Config) -> nn.Model:
    d, inner, heads = c.d_model, c.ffw_size or 4 * c.d_model, c.n_heads * c.kv_size
    block = nn.Module(
        attention_norm=nn.RMSNorm(d),
        attention=nn.Attention(
            nn.Heads(c.n_heads, c.n_heads, c.kv_size, rotary=0, relative=True),
            q_proj=nn.Linear(d, heads, bias=False),
            k_proj=nn.Linear(d, heads, bias=False),
            v_proj=nn.Linear(d, heads, bias=False),
            r_proj=nn.Linear(d, heads, bias=False),  # of relative positions
            u=nn.Parameter((c.n_heads, c.kv_size)),
            v=nn.Parameter((c.n_heads, c.kv_size)),
            o_proj=nn.Linear(heads, d),
        ),
        mlp_norm=nn.RMSNorm(d),
        mlp=nn.MLP(up_proj=nn.Linear(d, inner), down_proj=nn.Linear(inner, d)),
    )
    return nn.Model(
        embedding=nn.Embedding(c.vocab_size, d),
        layers=nn.Repeat(c.n_layers, block),
        norm=nn.RMSNorm(d),
        head=nn.Head(d, c.vocab_size, bias=True),
        tie=("head.weight", "embedding.weight") if c.tie_word_embeddings else None,
    )
