"""K-EXAONE: EXAONE 4's attention, routed and shared experts.

Source: LG AI Research 2026, "K-EXAONE Technical Report".
"""

from typing import Any

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "exaone_moe",
    "ExaoneMoeForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "sliding_window": nonnegative(4096),
        "sliding_window_pattern": 4,
        "layer_types": None,
    },
    vocab_size=102400,
    hidden_size=4096,
    intermediate_size=16384,
    moe_intermediate_size=1024,
    num_hidden_layers=32,
    mlp_layer_types=None,
    first_k_dense_replace=nonnegative(1),
    num_attention_heads=32,
    num_key_value_heads=32,
    head_dim=optional(),
    num_experts=64,
    num_experts_per_tok=8,
    num_shared_experts=nonnegative(1),
    tie_word_embeddings=False,
)
def exaone_moe(c: Config) -> nn.Model:
    d, pattern = c.hidden_size, nn.EVERYTHING
    if c.layer_types is None:
        pattern = ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1))
    runs = kit.heads(c, windows=kit.windows_of(c, pattern))
    attends = kit.attention(c, runs, **kit.head_norms(runs))
    mlps = kit.gated_mlp(d, c.intermediate_size, c.hidden_act), _mixture(c)
    return kit.decoder(
        c,
        kit.dense_and_sparse(c, c.first_k_dense_replace, *(kit.pre_norm(attends, mlp, nn.RMSNorm(d)) for mlp in mlps)),
    )


def _mixture(c: Config) -> nn.Module:
    """Sigmoid-routed experts with a balancing bias (a buffer), stored next to the router."""
    inner, of = c.moe_intermediate_size, c.num_experts
    balance: dict[str, Any] = {"e_score_correction_bias": nn.Buffer(of)}
    return kit.mixture(
        c,
        inner,
        kit.experts_used(c, "num_experts"),
        of,
        scoring="sigmoid",
        scores={} if c.published else balance,
        **(balance if c.published else {}),
        shared_experts=kit.gated_mlp(c.hidden_size, inner * c.num_shared_experts, c.hidden_act),
    )
