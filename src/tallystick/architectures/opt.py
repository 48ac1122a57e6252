"""OPT (Zhang et al. 2022, "OPT: Open Pre-trained Transformer Language Models")."""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional

# The first two rows of the position table are not positions: a reserve for padding.
OFFSET = 2


@architecture(
    "opt",
    "OPTForCausalLM",
    running={"activation_function": "relu", "dropout": 0.1, "attention_dropout": 0.0},
    vocab_size=50272,
    hidden_size=768,
    word_embed_proj_dim=optional(),
    ffn_dim=3072,
    max_position_embeddings=2048,
    num_hidden_layers=12,
    num_attention_heads=12,
    enable_bias=True,
    layer_norm_elementwise_affine=True,
    do_layer_norm_before=True,
    _remove_final_layer_norm=False,
    tie_word_embeddings=True,
)
def opt(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, bias = c.hidden_size, c.ffn_dim, c.enable_bias
    heads = c.num_attention_heads
    projects = c.word_embed_proj_dim not in (None, d)  # most published configs state the width itself
    width = c.word_embed_proj_dim if projects else d
    final_norm = c.do_layer_norm_before and not c._remove_final_layer_norm
    norm = nn.LayerNorm(d) if c.layer_norm_elementwise_affine else nn.Module()
    block = nn.Module(
        self_attn=nn.Attention(
            nn.Heads(heads, heads, d / heads, rotary=0, dropout=c.attention_dropout > 0),
            k_proj=nn.Linear(d, d, bias=bias),
            v_proj=nn.Linear(d, d, bias=bias),
            q_proj=nn.Linear(d, d, bias=bias),
            out_proj=nn.Linear(d, d, bias=bias),
        ),
        self_attn_layer_norm=norm,
        fc1=nn.MLP(nn.FeedForward(d, inner, c.activation_function), **nn.Linear(d, inner, bias=bias).children),
        fc2=nn.MLP(**nn.Linear(inner, d, bias=bias).children),
        final_layer_norm=norm,
        dropout=nn.Dropout(2 * d, c.dropout),  # after attention and after the MLP
    )
    decoder = nn.Module(
        embed_tokens=nn.Embedding(c.vocab_size, width),
        embed_positions=nn.PositionEmbedding(c.max_position_embeddings + OFFSET, d),
        project_out=nn.Linear(d, width, bias=False) if projects else None,
        project_in=nn.Linear(width, d, bias=False) if projects else None,
        final_layer_norm=norm if final_norm else None,
        layers=nn.Repeat(c.num_hidden_layers, block),
    )
    return nn.Model(
        model=nn.Module(decoder=decoder),
        lm_head=nn.Head(width, c.vocab_size),
        tie=("lm_head.weight", "model.decoder.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
