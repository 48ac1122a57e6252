"""Arcee's AFM (Arcee AI 2025, "Arcee Foundation Model 4.5B"): Llama with a squared ReLU in place of the gate."""

from tallystick.architectures._decoder import attention, decoder, heads, plain_mlp, pre_norm
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


@architecture(
    "arcee",
    "ArceeForCausalLM",
    running={"hidden_act": "relu2"},
    vocab_size=32000,
    hidden_size=2560,
    intermediate_size=18432,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def arcee(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    attends = attention(c, heads(c), bias=c.attention_bias)
    return decoder(c, pre_norm(attends, plain_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), RMSNorm(d)))
