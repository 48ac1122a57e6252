"""Qwen1.5-MoE and Qwen2-57B-A14B (Yang et al. 2024, "Qwen2 Technical Report"): experts beside one shared."""

from tallystick.anatomy import Windows
from tallystick.architectures._decoder import (
    SLIDING,
    attention,
    decoder,
    experts_used,
    gated_mlp,
    heads,
    in_runs,
    listable,
    mixture,
    pre_norm,
    two_kinds,
    windows_of,
)
from tallystick.architectures.qwen3_moe import dense_layers
from tallystick.blueprint import Config, Group, Linear, Model, RMSNorm, Router, architecture, maybe, natural


@architecture(
    "qwen2_moe",
    "Qwen2MoeForCausalLM",
    running=SLIDING,
    vocab_size=151936,
    hidden_size=2048,
    intermediate_size=5632,
    moe_intermediate_size=1408,
    shared_expert_intermediate_size=5632,
    num_hidden_layers=24,
    num_attention_heads=16,
    num_key_value_heads=16,
    head_dim=maybe(),
    num_experts=natural(60),
    num_experts_per_tok=4,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    qkv_bias=True,
    tie_word_embeddings=False,
)
def qwen2_moe(c: Config) -> Model:
    d = c.hidden_size
    attends = attention(c, heads(c, windows=_windows(c)), bias=c.qkv_bias, output_bias=False)
    # What all of it keeps is not told: the shared expert is scaled by a gate of its own.
    dense = pre_norm(attends, gated_mlp(d, c.intermediate_size), RMSNorm(d))
    if not c.num_experts:
        return decoder(c, dense)
    return decoder(c, two_kinds(c, dense_layers(c), dense, pre_norm(attends, beside_shared(c), RMSNorm(d))))


def beside_shared(c: Config) -> Group:
    """Experts, and one that all tokens go through, scaled by a gate of its own."""
    d = c.hidden_size
    return mixture(
        c,
        c.moe_intermediate_size,
        experts_used(c, "num_experts"),
        c.num_experts,
        shared_expert=gated_mlp(d, c.shared_expert_intermediate_size),
        shared_expert_gate=Router(None, **Linear(d, 1, bias=False).children),
    )


def _windows(c: Config) -> Windows:
    """Where windows are on at all, every second layer below `max_window_layers`, the first one too."""
    layers = range(listable(c) if c.use_sliding_window and c.layer_types is None else 1)
    near = (c.use_sliding_window and layer % 2 == 0 and layer < c.max_window_layers for layer in layers)
    return windows_of(c, in_runs(near, c.sliding_window, None))
