"""Qwen3-Next (Qwen Team 2025): gated delta nets, and gated attention here and there; experts beside one shared."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from tallystick.anatomy import Correcting
from tallystick.architectures._decoder import decoder, gated_mlp, heads, key_value_heads, listable
from tallystick.architectures.qwen2_moe import beside_shared
from tallystick.architectures.qwen3_moe import dense_layers
from tallystick.blueprint import (
    Attention,
    Config,
    Group,
    Linear,
    Model,
    Recurrence,
    RMSNorm,
    Scan,
    Stack,
    Tensor,
    architecture,
    natural,
)

KINDS = ("linear_attention", "full_attention")


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
    num_experts=natural(512),
    num_experts_per_tok=10,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3_next(c: Config) -> Model:
    d, dense = c.hidden_size, dense_layers(c)
    sparse, plain = beside_shared(c), gated_mlp(d, c.intermediate_size)
    convolved, values = delta_widths(c)
    return delta_decoder(
        c,
        [plain if layer in dense else sparse for layer in range(listable(c))],
        in_proj_qkvz=Linear(d, convolved + values, bias=False),
        in_proj_ba=Linear(d, 2 * c.linear_num_value_heads, bias=False),
    )


def delta_decoder(c: Config, mlps: Sequence[Group], **reads: Group) -> Model:
    """Gated delta nets and gated attention, each layer with its MLP; `reads` are the projections by which a net reads."""
    mixers: dict[str, dict[str, Group]] = {
        KINDS[0]: {"linear_attn": _delta_net(c, reads)},
        KINDS[1]: {"self_attn": _attention(c)},
    }
    norm = _norm(c.hidden_size)

    def block(kind: str, mlp: Group) -> Group:
        # How a scan runs is not told, so nothing is of the MLP beside it.
        return Group(**mixers[kind], mlp=mlp, input_layernorm=norm, post_attention_layernorm=norm)

    runs = groupby(zip(_kinds(c), mlps, strict=True), key=lambda layer: (layer[0], id(layer[1])))
    layers = [list(run) for _, run in runs]
    return decoder(c, Stack(*((len(run), block(*run[0])) for run in layers)), norm)


def delta_widths(c: Config) -> tuple[int, int]:
    """What a delta net convolves of a token, queries, keys and values in one, and of that the values."""
    values = c.linear_num_value_heads * c.linear_value_head_dim
    return 2 * (c.linear_num_key_heads * c.linear_key_head_dim) + values, values


def _norm(width: int) -> Group:
    return RMSNorm(width, kind="gemma")


def _kinds(c: Config) -> list[str]:
    """What each layer mixes by: as listed, or every `full_attention_interval`-th by attention."""
    count, listed = int(c.num_hidden_layers), c.layer_types
    if listed is None:
        return [KINDS[(layer + 1) % int(c.full_attention_interval) == 0] for layer in range(listable(c))]
    if not isinstance(listed, list) or len(listed) != count or not all(kind in KINDS for kind in listed):
        raise c.refuse(f"layer_types must list {' or '.join(KINDS)} for each of the {count} layers")
    return listed


def _attention(c: Config) -> Attention:
    """Grouped heads; the query's projection gives a gate of what they give too."""
    d, size, bias = c.hidden_size, c.head_dim, c.attention_bias
    queries, keys = c.num_attention_heads * size, key_value_heads(c) * size
    return Attention(
        heads(c, size),
        q_proj=Linear(d, 2 * queries, bias=bias),
        k_proj=Linear(d, keys, bias=bias),
        v_proj=Linear(d, keys, bias=bias),
        o_proj=Linear(queries, d, bias=bias),
        q_norm=_norm(size),
        k_norm=_norm(size),
    )


def _delta_net(c: Config, reads: Mapping[str, Group]) -> Scan:
    """For each head of values a state of keys × values (Yang et al. 2024, "Gated Delta Networks", section 3)."""
    of_values, (convolved, values) = c.linear_num_value_heads, delta_widths(c)
    return Scan(
        Recurrence(
            inputs=convolved * c.linear_conv_kernel_dim,
            state=values * c.linear_key_head_dim,
            source="Yang et al. 2024, Gated Delta Networks, section 3",
            runs=Correcting(of_values, c.linear_key_head_dim, c.linear_value_head_dim),
        ),
        conv1d=Group(weight=Tensor((convolved, 1, c.linear_conv_kernel_dim), "conv")),
        **reads,
        norm=RMSNorm(c.linear_value_head_dim),
        out_proj=Linear(values, c.hidden_size, bias=False),
        dt_bias=Tensor((of_values,)),
        A_log=Tensor((of_values,)),
    )
