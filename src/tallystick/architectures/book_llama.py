"""The Llama 2, Llama 3 and Qwen3 classes of a book's notebooks.

Source: Raschka, "Build a Large Language Model (From Scratch)".
"""

from tallystick.architectures import kit
from tallystick.core import anatomy
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional


@architecture(
    "book_llama",
    vocab_size=REQUIRED,
    context_length=REQUIRED,
    emb_dim=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    n_kv_groups=optional(),
    head_dim=optional(),
    hidden_dim=REQUIRED,
    qk_norm=False,
    qkv_bias=False,
    tie_word_embeddings=False,  # the classes build a separate head and do not tie it
)
def book_llama(c: Config) -> nn.Model:
    # Refused: Gemma 3 and OLMo 3 of the notebooks (layer_types, other norms), and MoE
    # (num_experts).
    kit.refuse_keys(c, "the book's Llama and dense Qwen3", "layer_types", "query_pre_attn_scalar", "num_experts")
    if not c.head_dim:
        c.require_divisible("emb_dim", by="n_heads")
    if c.n_kv_groups:
        c.require_divisible("n_heads", by="n_kv_groups")
    d, inner, size, bias = c.emb_dim, c.hidden_dim, c.head_dim or c.emb_dim / c.n_heads, c.qkv_bias
    queries, keys = c.n_heads * size, (c.n_kv_groups or c.n_heads) * size
    block = nn.Module(
        att=nn.Attention(
            nn.Heads(c.n_heads, c.n_kv_groups or c.n_heads, size),
            W_query=nn.Linear(d, queries, bias=bias),
            W_key=nn.Linear(d, keys, bias=bias),
            W_value=nn.Linear(d, keys, bias=bias),
            out_proj=nn.Linear(queries, d, bias=False),
            q_norm=_norm(c, size, c.n_heads) if c.qk_norm else None,
            k_norm=_norm(c, size, c.n_kv_groups or c.n_heads) if c.qk_norm else None,
        ),
        ff=nn.MLP(
            nn.FeedForward(d, inner, "silu", gated=True),
            fc1=nn.Linear(d, inner, bias=False),
            fc2=nn.Linear(d, inner, bias=False),
            fc3=nn.Linear(inner, d, bias=False),
        ),
        norm1=_norm(c, d),
        norm2=_norm(c, d),
    )
    return nn.Model(
        tok_emb=nn.Embedding(c.vocab_size, d),
        trf_blocks=nn.Repeat(c.n_layers, block),
        final_norm=_norm(c, d),
        out_head=nn.Head(d, c.vocab_size),
        tie=("out_head.weight", "tok_emb.weight") if c.tie_word_embeddings else None,
    )


def _norm(c: Config, width: int, times: int = 1) -> nn.Norm:
    """The RMSNorm; its scale is `weight` in the Llama classes and `scale` in Qwen3 (qk_norm)."""
    runs = anatomy.Norm("rms32" if c.qk_norm else "own", width, times)
    return nn.Norm(runs, **{"scale" if c.qk_norm else "weight": nn.Parameter((width,), "norm")})
