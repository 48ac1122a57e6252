"""Qwen3-Next (Qwen Team 2025): gated delta nets, some gated attention, a shared expert."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from tallystick.architectures import kit
from tallystick.architectures.qwen2_moe import beside_shared
from tallystick.architectures.qwen3_moe import dense_layers
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

LAYER_KINDS = ("linear_attention", "full_attention")


@architecture(
    "qwen3_next",
    "Qwen3NextForCausalLM",
    vocab_size=151936,
    hidden_size=2048,
    intermediate_size=5632,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
    num_hidden_layers=48,
    layer_types=None,
    full_attention_interval=4,
    num_attention_heads=16,
    num_key_value_heads=2,
    head_dim=256,
    linear_conv_kernel_dim=4,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    num_experts=nonnegative(512),
    num_experts_per_tok=10,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3_next(c: Config) -> nn.Model:
    d, dense = c.hidden_size, dense_layers(c)
    sparse, plain = beside_shared(c), kit.gated_mlp(d, c.intermediate_size)
    convolved, values = delta_widths(c)
    return delta_decoder(
        c,
        [plain if layer in dense else sparse for layer in range(kit.listable(c))],
        in_proj_qkvz=nn.Linear(d, convolved + values, bias=False),
        in_proj_ba=nn.Linear(d, 2 * c.linear_num_value_heads, bias=False),
    )


def delta_decoder(c: Config, mlps: Sequence[nn.Module], **reads: nn.Module) -> nn.Model:
    """Return a decoder of gated delta nets and gated attention.

    Args:
        c: the config.
        mlps: the MLP of each layer.
        reads: the input projections of a delta net.
    """
    mixers: dict[str, dict[str, nn.Module]] = {
        LAYER_KINDS[0]: {"linear_attn": _delta_net(c, reads)},
        LAYER_KINDS[1]: {"self_attn": _attention(c)},
    }
    norm = _norm(c.hidden_size)

    def block(kind: str, mlp: nn.Module) -> nn.Module:
        # No runtime info: activations are not modelled for scan layers.
        return nn.Module(**mixers[kind], mlp=mlp, input_layernorm=norm, post_attention_layernorm=norm)

    runs = groupby(zip(_kinds(c), mlps, strict=True), key=lambda layer: (layer[0], id(layer[1])))
    layers = [list(run) for _, run in runs]
    return kit.decoder(c, nn.ModuleList(*((len(run), block(*run[0])) for run in layers)), norm)


def delta_widths(c: Config) -> tuple[int, int]:
    """Return the convolved elements of a token (queries, keys, values), and its value elements."""
    values = c.linear_num_value_heads * c.linear_value_head_dim
    return 2 * (c.linear_num_key_heads * c.linear_key_head_dim) + values, values


def _norm(width: int) -> nn.Module:
    return nn.RMSNorm(width, kind="gemma")


def _kinds(c: Config) -> list[str]:
    """Mixer of each layer: as listed, or attention in every `full_attention_interval`-th."""
    count, listed = int(c.num_hidden_layers), c.layer_types
    if listed is None:
        return [LAYER_KINDS[(layer + 1) % int(c.full_attention_interval) == 0] for layer in range(kit.listable(c))]
    if not isinstance(listed, list) or len(listed) != count or not all(kind in LAYER_KINDS for kind in listed):
        raise c.refuse(f"layer_types must list {' or '.join(LAYER_KINDS)} for each of the {count} layers")
    return listed


def _attention(c: Config) -> nn.Attention:
    """Grouped-query attention; `q_proj` gives queries and an output gate."""
    d, size, bias = c.hidden_size, c.head_dim, c.attention_bias
    queries, keys = c.num_attention_heads * size, kit.key_value_heads(c) * size
    return nn.Attention(
        kit.heads(c, size),
        q_proj=nn.Linear(d, 2 * queries, bias=bias),
        k_proj=nn.Linear(d, keys, bias=bias),
        v_proj=nn.Linear(d, keys, bias=bias),
        o_proj=nn.Linear(queries, d, bias=bias),
        q_norm=_norm(size),
        k_norm=_norm(size),
    )


def _delta_net(c: Config, reads: Mapping[str, nn.Module]) -> nn.Scan:
    """A gated delta net: per value head, a state of keys × values.

    Source: Yang et al. 2024, "Gated Delta Networks", section 3.
    """
    of_values, (convolved, values) = c.linear_num_value_heads, delta_widths(c)
    return nn.Scan(
        nn.Recurrence(
            inputs=convolved * c.linear_conv_kernel_dim,
            state=values * c.linear_key_head_dim,
            source="Yang et al. 2024, Gated Delta Networks, section 3",
            runs=nn.DeltaRule(of_values, c.linear_key_head_dim, c.linear_value_head_dim),
        ),
        conv1d=nn.Module(weight=nn.Parameter((convolved, 1, c.linear_conv_kernel_dim), "conv")),
        **reads,
        norm=nn.RMSNorm(c.linear_value_head_dim),
        out_proj=nn.Linear(values, c.hidden_size, bias=False),
        dt_bias=nn.Parameter((of_values,)),
        A_log=nn.Parameter((of_values,)),
    )
