"""BitNet b1.58 2B4T, with unquantised (not ternary) weights.

Source: Ma et al. 2025, "BitNet b1.58 2B4T Technical Report".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "bitnet",
    "BitNetForCausalLM",
    vocab_size=128256,
    hidden_size=2560,
    intermediate_size=6912,
    num_hidden_layers=30,
    num_attention_heads=20,
    num_key_value_heads=optional(5),
    head_dim=optional(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def bitnet(c: Config) -> nn.Model:
    d, inner = c.hidden_size, c.intermediate_size
    # Sub-norms before the last projection of attention and MLP, for quantised weights; without
    # `FeedForward`, the MLP's activations are not modelled.
    attends = kit.attention(c, kit.heads(c), bias=c.attention_bias, attn_sub_norm=nn.RMSNorm(d))
    mlp = nn.MLP(**kit.gated_mlp(d, inner).children, ffn_sub_norm=nn.RMSNorm(inner))
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.RMSNorm(d)))
