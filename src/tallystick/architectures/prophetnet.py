"""ProphetNet's decoder: predicts several future tokens, each with its own n-gram embedding.

Source: Qi et al. 2020, "ProphetNet: Predicting Future N-gram".
"""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "prophetnet",
    "ProphetNetForCausalLM",
    variants={},
    vocab_size=30522,
    hidden_size=1024,
    decoder_ffn_dim=4096,
    num_decoder_layers=12,
    num_decoder_attention_heads=16,
    max_position_embeddings=512,
    ngram=2,
    num_buckets=32,
    add_cross_attention=True,
    tie_word_embeddings=True,
)
def prophetnet(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_decoder_attention_heads")
    d, inner, heads = c.hidden_size, c.decoder_ffn_dim, c.num_decoder_attention_heads
    cross = _attention(d, None) if c.add_cross_attention else None
    block = nn.Module(
        # Each n-gram stream attends separately and is not cached. The token gives the scores of
        # relative positions.
        self_attn=_attention(
            d, nn.Heads(heads, heads, d / heads, rotary=0), relative_pos_embeddings=nn.Linear(d, c.num_buckets * heads)
        ),
        self_attn_layer_norm=nn.LayerNorm(d),
        cross_attn=cross,
        cross_attn_layer_norm=nn.LayerNorm(d) if cross else None,
        feed_forward=nn.MLP(intermediate=nn.Linear(d, inner), output=nn.Linear(inner, d)),
        feed_forward_layer_norm=nn.LayerNorm(d),
    )
    embedding, apart = "prophetnet.word_embeddings.weight", "prophetnet.decoder.word_embeddings.weight"
    return nn.Model(
        f"the layers process each token {int(c.ngram)} + 1 times",
        prophetnet=nn.Module(
            word_embeddings=nn.Embedding(c.vocab_size, d),
            decoder=nn.Module(
                word_embeddings=nn.Embedding(c.vocab_size, d),
                position_embeddings=nn.PositionEmbedding(c.max_position_embeddings, d),
                ngram_embeddings=nn.Module(weight=nn.Parameter((c.ngram, d), "other")),
                layers=nn.Repeat(c.num_decoder_layers, block),
                embeddings_layer_norm=nn.LayerNorm(d),
            ),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie={"lm_head.weight": embedding, apart: embedding} if c.tie_word_embeddings else None,
    )


def _attention(d: int, runs: nn.Heads | None, **more: nn.Module) -> nn.Attention:
    projections = {name: nn.Linear(d, d) for name in ("key_proj", "value_proj", "query_proj", "out_proj")}
    return nn.Attention(runs, **projections, **more)
