"""ERNIE 4.5 with experts (Baidu ERNIE Team 2025, "ERNIE 4.5 Technical Report")."""

from collections.abc import Container

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown


@architecture(
    "ernie4_5_moe",
    "Ernie4_5_MoeForCausalLM",
    aliases={"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"},
    vocab_size=103424,
    hidden_size=2560,
    intermediate_size=12288,
    moe_intermediate_size=1536,
    num_hidden_layers=28,
    num_attention_heads=20,
    num_key_value_heads=4,
    head_dim=optional(),
    moe_num_experts=64,
    moe_k=6,
    moe_num_shared_experts=nonnegative(2),
    moe_layer_start_index=nonnegative(1),
    moe_layer_end_index=None,
    moe_layer_interval=1,
    use_bias=optional(False),
    tie_word_embeddings=True,
)
def ernie4_5_moe(c: Config) -> nn.Model:
    d, inner, bias, of = c.hidden_size, c.moe_intermediate_size, c.use_bias, c.moe_num_experts
    attends = kit.attention(c, kit.heads(c), bias=bias)
    # Activations are not modelled: experts are chosen by biased scores and weighted by unbiased
    # ones. The bias is a parameter that receives no gradient.
    balance = nn.Router(None, e_score_correction_bias=nn.Parameter((1, of), trainable=False))
    shared = kit.gated_mlp(d, inner * c.moe_num_shared_experts, bias=bias) if c.moe_num_shared_experts else None
    used = kit.experts_used(c, "moe_num_experts", by="moe_k")
    moe = kit.mixture(
        c,
        inner,
        used,
        of,
        scores={} if c.published else {"moe_statics": balance},
        shared_experts=shared,
        moe_statics=balance if c.published else None,
    )
    dense = kit.gated_mlp(d, c.intermediate_size, bias=bias)
    sparse, plain = (kit.pre_norm(attends, mlp, nn.RMSNorm(d)) for mlp in (moe, dense))
    return kit.decoder(c, kit.two_kinds(c, _sparse(c), sparse, plain), head_bias=bias)


def _sparse(c: Config) -> Container[int]:
    """Sparse layers: every `moe_layer_interval`-th, from `..._start_index` to `..._end_index`.

    An end index of -1 is the last layer.
    """
    first, last, step = int(c.moe_layer_start_index), c.moe_layer_end_index, int(c.moe_layer_interval)
    if last is not None and (type(last) is not int or last < -1):
        raise c.refuse(f"moe_layer_end_index is {shown(last)}, expected the number of a layer, or -1 for the last one")
    end = int(c.num_hidden_layers) if last in (None, -1) else last + 1
    return range(-(-(first + 1) // step) * step - 1, end, step)
