"""Qwen1.5-MoE and Qwen2-57B-A14B: routed experts and a gated shared expert.

Source: Yang et al. 2024, "Qwen2 Technical Report".
"""

from tallystick.architectures import kit
from tallystick.architectures.qwen3_moe import dense_layers
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "qwen2_moe",
    "Qwen2MoeForCausalLM",
    running=kit.SLIDING,
    vocab_size=151936,
    hidden_size=2048,
    intermediate_size=5632,
    moe_intermediate_size=1408,
    shared_expert_intermediate_size=5632,
    num_hidden_layers=24,
    num_attention_heads=16,
    num_key_value_heads=16,
    head_dim=optional(),
    num_experts=nonnegative(60),
    num_experts_per_tok=4,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    qkv_bias=True,
    tie_word_embeddings=False,
)
def qwen2_moe(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c, windows=_windows(c)), bias=c.qkv_bias, output_bias=False)
    # Activations are not modelled: a gate scales the shared expert.
    dense = kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size), nn.RMSNorm(d))
    if not c.num_experts:
        return kit.decoder(c, dense)
    return kit.decoder(
        c, kit.two_kinds(c, dense_layers(c), dense, kit.pre_norm(attends, beside_shared(c), nn.RMSNorm(d)))
    )


def beside_shared(c: Config) -> nn.Module:
    """Return routed experts, and a shared expert scaled by a gate."""
    d = c.hidden_size
    return kit.mixture(
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "num_experts"),
        c.num_experts,
        shared_expert=kit.gated_mlp(d, c.shared_expert_intermediate_size),
        shared_expert_gate=nn.Router(None, **nn.Linear(d, 1, bias=False).children),
    )


def _windows(c: Config) -> nn.Windows:
    """If windows are on: every other layer below `max_window_layers`, starting at layer 0."""
    layers = range(kit.listable(c) if c.use_sliding_window and c.layer_types is None else 1)
    near = (c.use_sliding_window and layer % 2 == 0 and layer < c.max_window_layers for layer in layers)
    return kit.windows_of(c, kit.in_runs(near, c.sliding_window, None))
