"""GLM-4.7-Flash (Z.ai 2026): latent attention (MLA), routed and shared experts.

It follows GLM-4.5 (GLM Team 2025).
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention, sigmoid_mixture
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "glm4_moe_lite",
    "Glm4MoeLiteForCausalLM",
    aliases={"num_local_experts": "n_routed_experts", "head_dim": "qk_rope_head_dim"},
    vocab_size=154880,
    hidden_size=2048,
    intermediate_size=10240,
    moe_intermediate_size=1536,
    num_hidden_layers=47,
    mlp_layer_types=None,
    num_attention_heads=20,
    q_lora_rank=optional(768),
    kv_lora_rank=512,
    qk_nope_head_dim=192,
    qk_rope_head_dim=64,
    v_head_dim=256,
    n_shared_experts=nonnegative(1),
    n_routed_experts=64,
    num_experts_per_tok=4,
    attention_bias=False,
    tie_word_embeddings=False,
)
def glm4_moe_lite(c: Config) -> nn.Model:
    return kit.decoder(c, some_dense(c, 1, latent_attention(c), sigmoid_mixture(c, scoring=None)))


def some_dense(c: Config, first: int, attends: nn.Attention, moe: nn.Module) -> nn.ModuleList:
    """Return blocks that are dense as listed (or the `first` ones), with experts in the others."""
    d = c.hidden_size
    dense = kit.gated_mlp(d, c.intermediate_size)  # activations are not modelled, as for the experts
    return kit.dense_and_sparse(
        c, first, kit.pre_norm(attends, dense, nn.RMSNorm(d)), kit.pre_norm(attends, moe, nn.RMSNorm(d))
    )
