"""Command A+ (Cohere 2026): Command A's windows, and experts beside attention in place of an MLP."""

from typing import Any

from tallystick.anatomy import Windows
from tallystick.architectures._decoder import (
    attention,
    decoder,
    experts_used,
    gated_mlp,
    heads,
    in_runs,
    listable,
    mixture,
    windows_of,
)
from tallystick.architectures._layers import dense_and_sparse
from tallystick.architectures.cohere import norm
from tallystick.blueprint import Config, Group, Model, Parallel, architecture, maybe, natural


@architecture(
    "cohere2_moe",
    "Cohere2MoeForCausalLM",
    running={
        "sliding_window": natural(4096, nullable=True),
        "sliding_window_pattern": 4,
        "prefix_dense_sliding_window_pattern": 1,
        "layer_types": None,
    },
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    prefix_dense_intermediate_size=maybe(),
    num_hidden_layers=40,
    first_k_dense_replace=natural(0),
    mlp_layer_types=None,
    num_attention_heads=64,
    num_key_value_heads=maybe(),
    head_dim=128,
    num_experts=8,
    num_experts_per_tok=2,
    num_shared_experts=natural(0),
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere2_moe(c: Config) -> Model:
    attends = attention(c, heads(c, windows=_windows(c)), bias=c.attention_bias)
    dense = gated_mlp(c.hidden_size, c.prefix_dense_intermediate_size or c.intermediate_size)

    def block(mlp: Group) -> Group:
        return Parallel(self_attn=attends, mlp=mlp, input_layernorm=norm(c.hidden_size))

    return decoder(
        c, dense_and_sparse(c, c.first_k_dense_replace, block(dense), block(_mixture(c))), norm(c.hidden_size)
    )


def _mixture(c: Config) -> Group:
    """Experts, and beside them one MLP as wide as the shared ones together."""
    inner, shared = c.intermediate_size, c.num_shared_experts
    beside: dict[str, Any] = {"shared_experts": gated_mlp(c.hidden_size, inner * shared)} if shared else {}
    return mixture(c, inner, experts_used(c, "num_experts"), c.num_experts, **beside)


def _windows(c: Config) -> Windows:
    """Layers that see a window, and every so many one that sees all: counted anew behind the first dense ones."""
    dense, layers = int(c.first_k_dense_replace), int(c.num_hidden_layers)
    if not dense or c.layer_types is not None:
        return windows_of(c, ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1)))
    if dense > listable(c):
        raise c.refuse(f"first_k_dense_replace = {dense} is more than num_hidden_layers = {layers}")
    first, others = int(c.prefix_dense_sliding_window_pattern), int(c.sliding_window_pattern)
    near = [(layer + 1) % first for layer in range(dense)] + [(layer + 1) % others for layer in range(layers - dense)]
    return windows_of(c, in_runs(near, c.sliding_window, None))
