"""AFM: Llama with a squared ReLU MLP instead of a gated one.

Source: Arcee AI 2025, "Arcee Foundation Model 4.5B".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "arcee",
    "ArceeForCausalLM",
    running={"hidden_act": "relu2"},
    vocab_size=32000,
    hidden_size=2560,
    intermediate_size=18432,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def arcee(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c), bias=c.attention_bias)
    return kit.decoder(
        c, kit.pre_norm(attends, kit.plain_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), nn.RMSNorm(d))
    )
