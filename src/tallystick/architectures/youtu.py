"""Youtu-LLM: latent attention (MLA) and gated MLPs.

Source: Tencent Youtu Lab 2025, "Youtu-LLM: Unlocking the Native Agentic Potential for Lightweight
Large Language Models".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "youtu",
    "YoutuForCausalLM",
    vocab_size=128256,
    hidden_size=2048,
    intermediate_size=6144,
    num_hidden_layers=32,
    num_attention_heads=16,
    q_lora_rank=optional(1536),
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    attention_bias=False,
    tie_word_embeddings=True,
)
def youtu(c: Config) -> nn.Model:
    d = c.hidden_size
    return kit.decoder(c, kit.pre_norm(latent_attention(c), kit.gated_mlp(d, c.intermediate_size), nn.RMSNorm(d)))
