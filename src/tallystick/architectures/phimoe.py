"""Phi-3.5-MoE (Abdin et al. 2024, "Phi-3 Technical Report")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "phimoe",
    "PhimoeForCausalLM",
    running={"sliding_window": nonnegative(None, nullable=True)},
    vocab_size=32064,
    hidden_size=4096,
    intermediate_size=6400,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=optional(),
    num_local_experts=16,
    num_experts_per_tok=2,
    attention_bias=False,
    lm_head_bias=False,
    tie_word_embeddings=False,
)
def phimoe(c: Config) -> nn.Model:
    d, norm = c.hidden_size, nn.LayerNorm(c.hidden_size)
    # Sparsemixer: each of two experts is chosen from the scores near the maximum (Liu et al. 2023,
    # "Sparse Backpropagation for MoE Training"). Its activations are not modelled.
    moe = kit.mixture(
        c,
        c.intermediate_size,
        kit.experts_used(c, "num_local_experts"),
        c.num_local_experts,
        under="gate" if c.published else "router",
        names=kit.NUMBERED,
    )
    block = nn.Module(
        self_attn=kit.attention(c, kit.heads(c, windows=((c.sliding_window, 1),)), bias=c.attention_bias),
        **{"block_sparse_moe" if c.published else "mlp": moe},
        input_layernorm=norm,
        post_attention_layernorm=norm,
    )
    return kit.decoder(c, block, nn.LayerNorm(d), head_bias=c.lm_head_bias)
