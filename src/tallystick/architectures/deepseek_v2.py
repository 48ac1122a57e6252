"""DeepSeek-V2: latent attention (MLA), routed and shared experts.

Source: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts
Language Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import dense_first, latent_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    aliases={"num_experts": "n_routed_experts"},
    vocab_size=102400,
    hidden_size=4096,
    intermediate_size=11008,
    moe_intermediate_size=1407,
    num_hidden_layers=32,
    first_k_dense_replace=nonnegative(),
    num_attention_heads=32,
    q_lora_rank=optional(1536),
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_shared_experts=nonnegative(2),
    n_routed_experts=64,
    num_experts_per_tok=optional(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def deepseek_v2(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, bias, of = c.hidden_size, c.moe_intermediate_size, c.mlp_bias, c.n_routed_experts
    # Without num_experts_per_tok, transformers builds a model that cannot run: all experts count as
    # active.
    used = of if c.num_experts_per_tok is None else kit.experts_used(c, "n_routed_experts")
    # No `scoring`: activations are not modelled.
    moe = kit.mixture(c, inner, used, of, shared_experts=kit.gated_mlp(d, inner * c.n_shared_experts, bias=bias))
    dense = kit.gated_mlp(d, c.intermediate_size, bias=bias)
    return kit.decoder(c, dense_first(c, moe, latent_attention(c), dense))
