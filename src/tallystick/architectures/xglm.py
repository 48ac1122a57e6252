"""XGLM: a pre-norm decoder with sinusoidal positions, which are not stored.

Source: Lin et al. 2021, "Few-shot Learning with Multilingual Language Models".
"""

from tallystick.architectures.kit.bart import attention, heads, layer
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "xglm",
    "XGLMForCausalLM",
    aliases={"hidden_size": "d_model", "num_attention_heads": "attention_heads", "num_hidden_layers": "num_layers"},
    vocab_size=256008,
    d_model=1024,
    ffn_dim=4096,
    num_layers=24,
    attention_heads=16,
    add_cross_attention=False,
    tie_word_embeddings=True,
)
def xglm(c: Config) -> nn.Model:
    d = c.d_model
    cross = attention(d, None) if c.add_cross_attention else None
    block = layer(d, heads(c, "d_model", "attention_heads"), c.ffn_dim, cross)
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            layers=nn.Repeat(c.num_layers, block),
            layer_norm=nn.LayerNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
