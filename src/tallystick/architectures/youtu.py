"""Youtu-LLM (Tencent Youtu Lab 2025, "Youtu-LLM: Unlocking the Native Agentic Potential for Lightweight Large Language Models"): latent attention before plain MLPs."""

from tallystick.architectures._decoder import decoder, gated_mlp, pre_norm
from tallystick.architectures.deepseek_v3 import latent_attention
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


@architecture(
    "youtu",
    "YoutuForCausalLM",
    vocab_size=128256,
    hidden_size=2048,
    intermediate_size=6144,
    num_hidden_layers=32,
    num_attention_heads=16,
    q_lora_rank=maybe(1536),
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    attention_bias=False,
    tie_word_embeddings=True,
)
def youtu(c: Config) -> Model:
    d = c.hidden_size
    return decoder(c, pre_norm(latent_attention(c), gated_mlp(d, c.intermediate_size), RMSNorm(d)))
