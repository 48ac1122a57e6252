"""Command A+ (Cohere 2026): Command A's windows, and experts in parallel with attention."""

from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.cohere import norm
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "cohere2_moe",
    "Cohere2MoeForCausalLM",
    running={
        "sliding_window": nonnegative(4096, nullable=True),
        "sliding_window_pattern": 4,
        "prefix_dense_sliding_window_pattern": 1,
        "layer_types": None,
    },
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    prefix_dense_intermediate_size=optional(),
    num_hidden_layers=40,
    first_k_dense_replace=nonnegative(0),
    mlp_layer_types=None,
    num_attention_heads=64,
    num_key_value_heads=optional(),
    head_dim=128,
    num_experts=8,
    num_experts_per_tok=2,
    num_shared_experts=nonnegative(0),
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere2_moe(c: Config) -> nn.Model:
    attends = kit.attention(c, kit.heads(c, windows=_windows(c)), bias=c.attention_bias)
    dense = kit.gated_mlp(c.hidden_size, c.prefix_dense_intermediate_size or c.intermediate_size)

    def block(mlp: nn.Module) -> nn.Module:
        return nn.ParallelBlock(self_attn=attends, mlp=mlp, input_layernorm=norm(c.hidden_size))

    return kit.decoder(
        c, kit.dense_and_sparse(c, c.first_k_dense_replace, block(dense), block(_mixture(c))), norm(c.hidden_size)
    )


def _mixture(c: Config) -> nn.Module:
    """Routed experts, and one MLP as wide as all shared experts together."""
    inner, shared = c.intermediate_size, c.num_shared_experts
    extras: dict[str, Any] = {"shared_experts": kit.gated_mlp(c.hidden_size, inner * shared)} if shared else {}
    return kit.mixture(c, inner, kit.experts_used(c, "num_experts"), c.num_experts, **extras)


def _windows(c: Config) -> nn.Windows:
    """Windows with periodic full attention; the period restarts after the dense layers."""
    dense, layers = int(c.first_k_dense_replace), int(c.num_hidden_layers)
    if not dense or c.layer_types is not None:
        return kit.windows_of(c, ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1)))
    if dense > kit.listable(c):
        raise c.refuse(f"first_k_dense_replace = {dense} is more than num_hidden_layers = {layers}")
    first, others = int(c.prefix_dense_sliding_window_pattern), int(c.sliding_window_pattern)
    near = [(layer + 1) % first for layer in range(dense)] + [(layer + 1) % others for layer in range(layers - dense)]
    return kit.windows_of(c, kit.in_runs(near, c.sliding_window, None))
