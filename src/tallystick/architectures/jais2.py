"""Jais 2 (Inception and MBZUAI 2025): Llama with biases, LayerNorms and a squared ReLU in place of the gate."""

from tallystick.architectures._decoder import attention, decoder, heads, plain_mlp, pre_norm
from tallystick.blueprint import Config, LayerNorm, Model, architecture, maybe


@architecture(
    "jais2",
    "Jais2ForCausalLM",
    running={"hidden_act": "relu2"},
    vocab_size=150272,
    hidden_size=3328,
    intermediate_size=26624,
    num_hidden_layers=32,
    num_attention_heads=26,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    attention_bias=True,
    mlp_bias=True,
    tie_word_embeddings=False,
)
def jais2(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    mlp = plain_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias)
    return decoder(c, pre_norm(attention(c, heads(c), bias=c.attention_bias), mlp, LayerNorm(d)), LayerNorm(d))
