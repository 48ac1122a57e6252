"""BitNet b1.58 2B4T (Ma et al. 2025, "BitNet b1.58 2B4T Technical Report"), its weights as numbers of any value."""

from tallystick.architectures._decoder import attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import MLP, Config, Model, RMSNorm, architecture, maybe


@architecture(
    "bitnet",
    "BitNetForCausalLM",
    vocab_size=128256,
    hidden_size=2560,
    intermediate_size=6912,
    num_hidden_layers=30,
    num_attention_heads=20,
    num_key_value_heads=maybe(5),
    head_dim=maybe(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def bitnet(c: Config) -> Model:
    d, inner = c.hidden_size, c.intermediate_size
    # A norm stands before the last projection of either, where quantised weights want it.
    attends = attention(c, heads(c), bias=c.attention_bias, attn_sub_norm=RMSNorm(d))
    mlp = MLP(**gated_mlp(d, inner).children, ffn_sub_norm=RMSNorm(inner))  # what that keeps is not told
    return decoder(c, pre_norm(attends, mlp, RMSNorm(d)))
