"""Qwen3.5's MoE text model (Qwen Team 2026): delta nets, gated attention, a shared expert."""

from tallystick.architectures.qwen2_moe import beside_shared
from tallystick.architectures.qwen3_5_text import four_readers
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "qwen3_5_moe_text",
    "Qwen3_5MoeForCausalLM",
    vocab_size=248320,
    hidden_size=2048,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
    num_hidden_layers=40,
    layer_types=None,
    full_attention_interval=4,
    num_attention_heads=16,
    num_key_value_heads=2,
    head_dim=256,
    linear_conv_kernel_dim=4,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    num_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3_5_moe_text(c: Config) -> nn.Model:
    return four_readers(c, beside_shared(c))
