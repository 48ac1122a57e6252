"""Zamba: Mamba layers, and one attention block shared by several layers.

Source: Zyphra 2024, "Zamba: A Compact 7B SSM Hybrid Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import mamba_keeps, rank, refuse_other_heads, short_conv
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, int_or, nonnegative, optional

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
    attn_layer_offset=nonnegative(4),
    attention_hidden_size=optional(),
    num_attention_heads=16,
    num_key_value_heads=16,
    attention_head_dim=optional(),
    n_mamba_heads=2,
    mamba_d_state=16,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_dt_rank=int_or("auto"),
    mamba_conv_bias=True,
    mamba_proj_bias=False,
    tie_word_embeddings=True,
)
def zamba(c: Config) -> nn.Model:
    kinds = kit.listed(c, "layers_block_type", (kit.LINEAR, HYBRID), lambda layer: _pattern(c, layer))
    if len(kinds) < 3 and c.layers_block_type is None:
        raise c.refuse(f"num_hidden_layers = {len(kinds)} is fewer than the 3 layers before the pattern")
    first = kinds.index(HYBRID) if HYBRID in kinds else 0
    scan = nn.Module(mamba=_mamba(c), input_layernorm=nn.RMSNorm(c.hidden_size))
    both = nn.Module(
        shared_transf=shared(c, f"model.layers.{first}.shared_transf", **_transformer(c)),
        linear=nn.Linear(c.hidden_size, c.hidden_size, bias=False),
        mamba_decoder=scan,
    )
    # The layer that owns the shared block is a run of its own.
    each = ((kind, number == first) for number, kind in enumerate(kinds))
    return kit.frame(c, kit.in_turns(each, lambda kind, _: both if kind == HYBRID else scan, depth=c.num_hidden_layers))


def _pattern(c: Config, layer: int) -> str:
    """Default kind of a layer: two Mamba layers, one with the block, then one per period."""
    if layer < 3:
        return HYBRID if layer == 2 else kit.LINEAR
    return HYBRID if (layer - 3) % int(c.attn_layer_period) == c.attn_layer_offset else kit.LINEAR


def shared(c: Config, of: str, **block: nn.Module) -> nn.Module:
    """Return a block tied to the one named `of`; untied without `tie_word_embeddings`.

    transformers shares these blocks only if embedding and head are tied too.
    """
    return nn.Shared(of, **block) if c.tie_word_embeddings else nn.Module(**block)


def _transformer(c: Config) -> dict[str, nn.Module]:
    """The shared block: attention reads the token and its embedding, concatenated; then an MLP."""
    d = c.hidden_size
    reads, runs = wide_heads(c)
    return {
        "self_attn": wide_attention(c, runs, reads),
        "feed_forward": kit.gated_mlp(d, c.intermediate_size),  # no runtime info: activations are not modelled
        "input_layernorm": nn.RMSNorm(reads),
        "pre_ff_layernorm": nn.RMSNorm(d),
    }


def wide_heads(c: Config) -> tuple[int, nn.Heads]:
    """Return the input width of the shared attention (default: 2 × hidden_size), and its heads."""
    reads, twice = c.attention_hidden_size, 2 * c.hidden_size
    return reads or twice, kit.heads(c, c.attention_head_dim or kit.rounded(twice, c.num_attention_heads))


def wide_attention(c: Config, runs: nn.Heads, reads: int, **more: nn.Module) -> nn.Attention:
    """Return attention that reads `reads` elements and returns hidden_size."""
    queries, keys = runs.queries * runs.size, runs.keys * runs.size
    return nn.Attention(
        runs,
        q_proj=nn.Linear(reads, queries, bias=False),
        k_proj=nn.Linear(reads, keys, bias=False),
        v_proj=nn.Linear(reads, keys, bias=False),
        o_proj=nn.Linear(queries, c.hidden_size, bias=False),
        **more,
    )


def _mamba(c: Config) -> nn.Scan:
    """Mamba with channels split into heads; each head has its own projections."""
    d, inner, count, rows = c.hidden_size, c.mamba_expand * c.hidden_size, c.n_mamba_heads, c.mamba_d_state
    refuse_other_heads(c, inner, "n_mamba_heads")
    size, steps = inner / count, rank(c, "mamba_dt_rank")
    return nn.Scan(
        mamba_keeps(inner, rows=rows, kernel=c.mamba_d_conv),
        conv1d=short_conv(inner, c.mamba_d_conv, bias=c.mamba_conv_bias),
        in_proj=nn.Linear(d, 2 * inner, bias=c.mamba_proj_bias),
        x_proj_weight=nn.Parameter((count, steps + 2 * rows, size)),
        dt_proj_weight=nn.Parameter((count, size, steps)),
        dt_proj_bias=nn.Parameter((count, size)),
        A_log=nn.Parameter((count, size, rows)),
        D=nn.Parameter((count, size)),
        out_proj=nn.Linear(inner, d, bias=c.mamba_proj_bias),
    )
