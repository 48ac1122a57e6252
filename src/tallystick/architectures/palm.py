"""PaLM (Chowdhery et al. 2022): parallel blocks, multi-query attention, SwiGLU, no biases.

Source: "PaLM: Scaling Language Modeling with Pathways", section 2.1.
Google released no checkpoint, so the tensor names are ours. The paper says that layer norms have
no bias and does not mention a scale. Only without scales does table 1 come out: 540.35B, not
540.36B. `norm_scale` adds them.
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional


@architecture(
    "palm",
    vocab_size=256000,
    d_model=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    head_dim=256,
    d_ff=optional(),
    norm_scale=False,
    tie_word_embeddings=True,
)
def palm(c: Config) -> nn.Model:
    d, queries, inner = c.d_model, c.n_heads * c.head_dim, c.d_ff or 4 * c.d_model
    norm = nn.LayerNorm(d, scale=bool(c.norm_scale), bias=False)
    block = nn.ParallelBlock(
        # Attention and MLP run in parallel after one norm; no biases.
        norm=norm,
        attention=nn.Attention(
            nn.Heads(c.n_heads, 1, c.head_dim),
            q_proj=nn.Linear(d, queries, bias=False),
            k_proj=nn.Linear(d, c.head_dim, bias=False),  # multi-query: one key and one value head
            v_proj=nn.Linear(d, c.head_dim, bias=False),
            o_proj=nn.Linear(queries, d, bias=False),
        ),
        mlp=kit.gated_mlp(d, inner, "silu"),
    )
    return nn.Model(
        embedding=nn.Embedding(c.vocab_size, d),
        layers=nn.Repeat(c.n_layers, block),
        norm=norm,
        head=nn.Head(d, c.vocab_size),
        tie=("head.weight", "embedding.weight") if c.tie_word_embeddings else None,
    )
