"""InternLM3 (Shanghai AI Laboratory 2025): Llama, with all biases or none."""

from tallystick.architectures import kit
from tallystick.architectures.llama import llama
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "internlm3",
    "LlamaForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    aliases={"qkv_bias": "attention_bias", "bias": "mlp_bias"},
    vocab_size=128512,
    hidden_size=4096,
    intermediate_size=10240,
    num_hidden_layers=48,
    num_attention_heads=32,
    num_key_value_heads=optional(2),
    head_dim=optional(128),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def internlm3(c: Config) -> nn.Model:
    if c.attention_bias != c.mlp_bias:
        raise c.refuse(
            "attention_bias (or qkv_bias) and mlp_bias (or bias) differ, which transformers does not support"
        )
    return llama(c)
