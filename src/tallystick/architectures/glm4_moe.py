"""GLM-4.5 and 4.6: DeepSeek-V3's experts, without multi-token prediction.

Source: GLM Team 2025, "GLM-4.5: Agentic, Reasoning, and Coding Foundation Models".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import dense_first, sigmoid_mixture
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "glm4_moe",
    "Glm4MoeForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "partial_rotary_factor": 0.5,
        "rope_parameters": None,
        "num_nextn_predict_layers": nonnegative(1),
    },
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=151552,
    hidden_size=4096,
    intermediate_size=10944,
    moe_intermediate_size=1408,
    num_hidden_layers=46,
    first_k_dense_replace=nonnegative(1),
    num_attention_heads=96,
    num_key_value_heads=8,
    head_dim=optional(),
    n_shared_experts=nonnegative(1),
    n_routed_experts=128,
    num_experts_per_tok=8,
    use_qk_norm=False,
    attention_bias=False,
    tie_word_embeddings=False,
)
def glm4_moe(c: Config) -> nn.Model:
    size = c.head_dim or kit.rounded(c.hidden_size, c.num_attention_heads)
    runs = kit.heads(c, size, rotary=kit.rotary_dim(c, size))
    norms = kit.head_norms(runs) if c.use_qk_norm else {}
    attends = kit.attention(c, runs, bias=c.attention_bias, output_bias=False, **norms)
    return kit.decoder(c, dense_first(c, sigmoid_mixture(c), attends))
