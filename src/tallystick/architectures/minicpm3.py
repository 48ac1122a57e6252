"""MiniCPM3: latent attention (MLA), and residual streams scaled by constants.

Source: Hu et al. 2024, "MiniCPM: Unveiling the Potential of Small Language Models with Scalable
Training Strategies".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "minicpm3",
    "MiniCPM3ForCausalLM",
    vocab_size=73448,
    hidden_size=2560,
    intermediate_size=6400,
    num_hidden_layers=62,
    num_attention_heads=40,
    q_lora_rank=optional(768),
    kv_lora_rank=256,
    qk_nope_head_dim=64,
    qk_rope_head_dim=32,
    v_head_dim=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=True,
)
def minicpm3(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, values = c.hidden_size, c.v_head_dim or c.hidden_size / c.num_attention_heads
    mlp = kit.gated_mlp(d, c.intermediate_size, bias=c.mlp_bias)  # activations are not modelled: residual scales
    return kit.decoder(c, kit.pre_norm(latent_attention(c, values=values), mlp, nn.RMSNorm(d)))
