"""Aria without its eyes (Li et al. 2024, "Aria: An Open Multimodal Native Mixture-of-Experts Model"): experts beside shared ones."""

from tallystick.architectures._decoder import attention, decoder, experts_used, gated_mlp, heads, pre_norm, router
from tallystick.architectures._layers import as_published
from tallystick.blueprint import Config, Experts, Group, Model, RMSNorm, Tensor, architecture, maybe, natural


@architecture(
    "aria_text",
    "AriaTextForCausalLM",
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    moe_num_experts=8,
    moe_topk=2,
    moe_num_shared_experts=natural(2),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def aria_text(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, of = c.hidden_size, c.intermediate_size, c.moe_num_experts
    weights = as_published(
        c,
        {"gate_up_proj": "fc1.weight", "down_proj": "fc2.weight"},
        gate_up_proj=Tensor((of, d, 2 * inner)),
        down_proj=Tensor((of, inner, d)),
    )
    moe = Group(  # what is read by the shared experts and by the others is not told
        router=router(d, None, of),
        experts=Experts(experts_used(c, "moe_num_experts", by="moe_topk"), of, **weights),
        shared_experts=gated_mlp(d, inner * c.moe_num_shared_experts, bias=c.mlp_bias),
    )
    return decoder(c, pre_norm(attention(c, heads(c), bias=c.attention_bias), moe, RMSNorm(d)))
