"""K-EXAONE (LG AI Research 2026, "K-EXAONE Technical Report"): EXAONE 4's attention, experts beside one shared."""

from typing import Any

from tallystick.anatomy import EVERYTHING
from tallystick.architectures._decoder import (
    SILU,
    attention,
    decoder,
    experts_used,
    gated_mlp,
    head_norms,
    heads,
    mixture,
    pre_norm,
    windows_of,
)
from tallystick.architectures._layers import dense_and_sparse
from tallystick.blueprint import Buffer, Config, Group, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "exaone_moe",
    "ExaoneMoeForCausalLM",
    running={**SILU, "sliding_window": natural(4096), "sliding_window_pattern": 4, "layer_types": None},
    vocab_size=102400,
    hidden_size=4096,
    intermediate_size=16384,
    moe_intermediate_size=1024,
    num_hidden_layers=32,
    mlp_layer_types=None,
    first_k_dense_replace=natural(1),
    num_attention_heads=32,
    num_key_value_heads=32,
    head_dim=maybe(),
    num_experts=64,
    num_experts_per_tok=8,
    num_shared_experts=natural(1),
    tie_word_embeddings=False,
)
def exaone_moe(c: Config) -> Model:
    d, pattern = c.hidden_size, EVERYTHING
    if c.layer_types is None:
        pattern = ((c.sliding_window, int(c.sliding_window_pattern) - 1), (None, 1))
    runs = heads(c, windows=windows_of(c, pattern))
    attends = attention(c, runs, **head_norms(runs))
    mlps = gated_mlp(d, c.intermediate_size, c.hidden_act), _mixture(c)
    return decoder(
        c, dense_and_sparse(c, c.first_k_dense_replace, *(pre_norm(attends, mlp, RMSNorm(d)) for mlp in mlps))
    )


def _mixture(c: Config) -> Group:
    """Experts chosen by sigmoids, and by a bias that balances their load, which a rule sets: published beside the router."""
    inner, of = c.moe_intermediate_size, c.num_experts
    balance: dict[str, Any] = {"e_score_correction_bias": Buffer(of)}
    return mixture(
        c,
        inner,
        experts_used(c, "num_experts"),
        of,
        scoring="sigmoid",
        scores={} if c.published else balance,
        **(balance if c.published else {}),
        shared_experts=gated_mlp(c.hidden_size, inner * c.num_shared_experts, c.hidden_act),
    )
