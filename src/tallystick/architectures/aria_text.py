"""Aria's text model: routed experts and shared experts in every layer.

Source: Li et al. 2024, "Aria: An Open Multimodal Native Mixture-of-Experts Model".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "aria_text",
    "AriaTextForCausalLM",
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    moe_num_experts=8,
    moe_topk=2,
    moe_num_shared_experts=nonnegative(2),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def aria_text(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, of = c.hidden_size, c.intermediate_size, c.moe_num_experts
    weights = kit.as_published(
        c,
        {"gate_up_proj": "fc1.weight", "down_proj": "fc2.weight"},
        gate_up_proj=nn.Parameter((of, d, 2 * inner)),
        down_proj=nn.Parameter((of, inner, d)),
    )
    moe = nn.Module(  # no runtime info: activations are not modelled
        router=kit.router(d, None, of),
        experts=nn.Experts(kit.experts_used(c, "moe_num_experts", by="moe_topk"), of, **weights),
        shared_experts=kit.gated_mlp(d, inner * c.moe_num_shared_experts, bias=c.mlp_bias),
    )
    return kit.decoder(c, kit.pre_norm(kit.attention(c, kit.heads(c), bias=c.attention_bias), moe, nn.RMSNorm(d)))
