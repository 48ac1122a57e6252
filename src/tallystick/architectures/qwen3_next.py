"""Qwen3-Next (Qwen Team 2025): gated delta nets, and gated attention here and there; experts beside one shared."""

from itertools import groupby

from tallystick.architectures._decoder import decoder, gated_mlp, heads, key_value_heads
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
    dense = dense_layers(c)
    kinds = enumerate(_kinds(c))
    runs = groupby((kind, layer not in dense) for layer, kind in kinds)
    return decoder(c, Stack(*((len(list(run)), _block(c, *kind)) for kind, run in runs)), _norm(c.hidden_size))


def _norm(width: int) -> Group:
    return RMSNorm(width, kind="gemma")


def _kinds(c: Config) -> list[str]:
    """What each layer mixes by: as listed, or every `full_attention_interval`-th by attention."""
    count, listed = int(c.num_hidden_layers), c.layer_types
    if listed is None:
        return [KINDS[(layer + 1) % int(c.full_attention_interval) == 0] for layer in range(count)]
    if not isinstance(listed, list) or len(listed) != count or not all(kind in KINDS for kind in listed):
        raise c.refuse(f"layer_types must list {' or '.join(KINDS)} for each of the {count} layers")
    return listed


def _block(c: Config, kind: str, sparse: bool) -> Group:
    d = c.hidden_size
    mixer = {"linear_attn": _delta_net(c)} if kind == KINDS[0] else {"self_attn": _attention(c)}
    return Group(
        **mixer,
        mlp=beside_shared(c)
        if sparse
        else gated_mlp(d, c.intermediate_size),  # how a scan runs is not told, so nothing is
        input_layernorm=_norm(d),
        post_attention_layernorm=_norm(d),
    )


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


def _delta_net(c: Config) -> Scan:
    """For each head of values a state of keys × values (Yang et al. 2024, "Gated Delta Networks", section 3)."""
    d, of_values = c.hidden_size, c.linear_num_value_heads
    keys, values = c.linear_num_key_heads * c.linear_key_head_dim, of_values * c.linear_value_head_dim
    convolved = 2 * keys + values
    return Scan(
        Recurrence(
            inputs=convolved * c.linear_conv_kernel_dim,
            state=values * c.linear_key_head_dim,
            source="Yang et al. 2024, Gated Delta Networks, section 3",
        ),
        conv1d=Group(weight=Tensor((convolved, 1, c.linear_conv_kernel_dim), "conv")),
        in_proj_qkvz=Linear(d, convolved + values, bias=False),
        in_proj_ba=Linear(d, 2 * of_values, bias=False),
        norm=RMSNorm(c.linear_value_head_dim),
        out_proj=Linear(values, d, bias=False),
        dt_bias=Tensor((of_values,)),
        A_log=Tensor((of_values,)),
    )
