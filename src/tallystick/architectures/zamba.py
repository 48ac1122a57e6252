"""Zamba (Zyphra 2024, "Zamba: A Compact 7B SSM Hybrid Model"): Mamba, and one block of attention that several layers run."""

from tallystick.architectures._decoder import frame, gated_mlp, heads, rounded
from tallystick.architectures._layers import LINEAR, in_turns, listed
from tallystick.architectures._mamba import mamba_keeps, rank, refuse_other_heads, short_conv
from tallystick.blueprint import (
    Attention,
    Config,
    Group,
    Heads,
    Linear,
    Model,
    RMSNorm,
    Scan,
    Shared,
    Tensor,
    architecture,
    maybe,
    natural,
    or_word,
)

HYBRID = "hybrid"


@architecture(
    "zamba",
    "ZambaForCausalLM",
    aliases={"layer_types": "layers_block_type", "head_dim": "attention_head_dim"},
    vocab_size=32000,
    hidden_size=3712,
    intermediate_size=14848,
    num_hidden_layers=76,
    layers_block_type=None,
    attn_layer_period=6,
    attn_layer_offset=natural(4),
    attention_hidden_size=maybe(),
    num_attention_heads=16,
    num_key_value_heads=16,
    attention_head_dim=maybe(),
    n_mamba_heads=2,
    mamba_d_state=16,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_dt_rank=or_word("auto"),
    mamba_conv_bias=True,
    mamba_proj_bias=False,
    tie_word_embeddings=True,
)
def zamba(c: Config) -> Model:
    kinds = listed(c, "layers_block_type", (LINEAR, HYBRID), lambda layer: _pattern(c, layer))
    if len(kinds) < 3 and c.layers_block_type is None:
        raise c.refuse(f"num_hidden_layers = {len(kinds)} is fewer than the 3 that come before the pattern of layers")
    first = kinds.index(HYBRID) if HYBRID in kinds else 0
    scan = Group(mamba=_mamba(c), input_layernorm=RMSNorm(c.hidden_size))
    both = Group(
        shared_transf=shared(c, f"model.layers.{first}.shared_transf", **_transformer(c)),
        linear=Linear(c.hidden_size, c.hidden_size, bias=False),
        mamba_decoder=scan,
    )
    each = (
        (kind, number == first) for number, kind in enumerate(kinds)
    )  # the layer that the others share with is alone
    return frame(c, in_turns(each, lambda kind, _: both if kind == HYBRID else scan, depth=c.num_hidden_layers))


def _pattern(c: Config, layer: int) -> str:
    """Two layers of Mamba, one with the block, and then one with it in each period."""
    if layer < 3:
        return HYBRID if layer == 2 else LINEAR
    return HYBRID if (layer - 3) % int(c.attn_layer_period) == c.attn_layer_offset else LINEAR


def shared(c: Config, of: str, **block: Group) -> Group:
    """A block that is one with the one of that name: as transformers has it, only where embedding and head are tied too."""
    return Shared(of, **block) if c.tie_word_embeddings else Group(**block)


def _transformer(c: Config) -> dict[str, Group]:
    """Attention and MLP, behind a norm each; they read the layer's token beside it as it was embedded."""
    d = c.hidden_size
    reads, runs = wide_heads(c)
    return {
        "self_attn": wide_attention(c, runs, reads),
        "feed_forward": gated_mlp(d, c.intermediate_size),  # how a scan runs is not told, so nothing is
        "input_layernorm": RMSNorm(reads),
        "pre_ff_layernorm": RMSNorm(d),
    }


def wide_heads(c: Config) -> tuple[int, Heads]:
    """What the shared attention reads of a token, twice the width if nothing else is stated, and its heads."""
    reads, twice = c.attention_hidden_size, 2 * c.hidden_size
    return reads or twice, heads(c, c.attention_head_dim or rounded(twice, c.num_attention_heads))


def wide_attention(c: Config, runs: Heads, reads: int, **more: Group) -> Attention:
    """Attention that reads more than it gives."""
    queries, keys = runs.queries * runs.size, runs.keys * runs.size
    return Attention(
        runs,
        q_proj=Linear(reads, queries, bias=False),
        k_proj=Linear(reads, keys, bias=False),
        v_proj=Linear(reads, keys, bias=False),
        o_proj=Linear(queries, c.hidden_size, bias=False),
        **more,
    )


def _mamba(c: Config) -> Scan:
    """Mamba whose channels are shared out among heads, each with projections of its own."""
    d, inner, count, rows = c.hidden_size, c.mamba_expand * c.hidden_size, c.n_mamba_heads, c.mamba_d_state
    refuse_other_heads(c, inner, "n_mamba_heads")
    size, steps = inner / count, rank(c, "mamba_dt_rank")
    return Scan(
        mamba_keeps(inner, rows=rows, kernel=c.mamba_d_conv),
        conv1d=short_conv(inner, c.mamba_d_conv, bias=c.mamba_conv_bias),
        in_proj=Linear(d, 2 * inner, bias=c.mamba_proj_bias),
        x_proj_weight=Tensor((count, steps + 2 * rows, size)),
        dt_proj_weight=Tensor((count, size, steps)),
        dt_proj_bias=Tensor((count, size)),
        A_log=Tensor((count, size, rows)),
        D=Tensor((count, size)),
        out_proj=Linear(inner, d, bias=c.mamba_proj_bias),
    )
