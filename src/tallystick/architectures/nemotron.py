"""Nemotron-4 and Minitron (Parmar et al. 2024, "Nemotron-4 15B Technical Report"): a squared ReLU, scales around 1."""

from tallystick.architectures._decoder import attention, decoder, head_dim, heads, plain_mlp, pre_norm, turned
from tallystick.blueprint import REQUIRED, Config, LayerNorm, Model, architecture, maybe


@architecture(
    "nemotron",
    "NemotronForCausalLM",
    running={"hidden_act": "relu2", "partial_rotary_factor": 0.5, "rope_parameters": None},
    vocab_size=256000,
    hidden_size=6144,
    intermediate_size=24576,
    num_hidden_layers=32,
    num_attention_heads=48,
    num_key_value_heads=REQUIRED,
    head_dim=maybe(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def nemotron(c: Config) -> Model:
    d = c.hidden_size
    attends = attention(c, heads(c, rotary=turned(c, head_dim(c)), joined=True), bias=c.attention_bias)
    mlp = plain_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias)
    return decoder(c, pre_norm(attends, mlp, LayerNorm(d)), LayerNorm(d))
