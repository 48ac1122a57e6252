"""Qwen3 with experts (Yang et al. 2025, "Qwen3 Technical Report")."""

from collections.abc import Sequence

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown


@architecture(
    "qwen3_moe",
    "Qwen3MoeForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "use_sliding_window": False, "sliding_window": nonnegative(4096, nullable=True)},
    aliases={"num_local_experts": "num_experts"},
    vocab_size=151936,
    hidden_size=2048,
    intermediate_size=6144,
    moe_intermediate_size=768,
    num_hidden_layers=24,
    num_attention_heads=32,
    num_key_value_heads=4,
    head_dim=optional(),
    num_experts=nonnegative(128),
    num_experts_per_tok=8,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3_moe(c: Config) -> nn.Model:
    dense = _block(c, kit.gated_mlp(c.hidden_size, c.intermediate_size, c.hidden_act))
    if not c.num_experts:
        return kit.decoder(c, dense)
    used = kit.experts_used(c, "num_experts")
    moe = kit.mixture(c, c.moe_intermediate_size, used, c.num_experts, scoring="softmax", weights="own")
    return kit.decoder(c, kit.two_kinds(c, dense_layers(c), dense, _block(c, moe)))


def dense_layers(c: Config, otherwise: Sequence[int] = ()) -> frozenset[int]:
    """Return the numbers of the dense layers.

    These are the layers in `mlp_only_layers`, or else `otherwise`, and all layers but every
    `decoder_sparse_step`-th.
    """
    listed, step = c.mlp_only_layers, int(c.decoder_sparse_step)
    if listed is None:
        listed = otherwise
    elif not isinstance(listed, list):
        raise c.refuse(f"mlp_only_layers is {shown(listed)}, expected a list of layers")
    layers = range(kit.listable(c))
    return frozenset(layer for layer in layers if layer in listed or (layer + 1) % step or not c.num_experts)


def _block(c: Config, mlp: nn.Module) -> nn.Module:
    window = c.sliding_window if c.use_sliding_window else None
    runs = kit.heads(c, windows=((window, 1),))
    attends = kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs))
    return kit.pre_norm(attends, mlp, nn.RMSNorm(c.hidden_size))
