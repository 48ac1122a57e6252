"""Llama 1, 2 and 3 (Touvron et al. 2023; Grattafiori et al. 2024), and all that is saved under its type."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


@architecture(
    "llama",
    "LlamaForCausalLM",
    running=SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def llama(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    attends = attention(c, heads(c), bias=c.attention_bias)
    mlp = gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias)
    return decoder(c, pre_norm(attends, mlp, RMSNorm(d)))
