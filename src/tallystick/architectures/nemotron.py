"""Nemotron-4 and Minitron: squared ReLU, and LayerNorm scales around 1.

Source: Parmar et al. 2024, "Nemotron-4 15B Technical Report".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional


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
    head_dim=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def nemotron(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c, rotary=kit.rotary_dim(c, kit.head_dim(c))), bias=c.attention_bias)
    mlp = kit.plain_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.LayerNorm(d)), nn.LayerNorm(d))
