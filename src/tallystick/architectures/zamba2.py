"""Zamba2: Mamba 2 layers, and shared attention blocks in turn, with adapters per layer.

Source: Zyphra 2024, "The Zamba2 Suite".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import mamba2
from tallystick.architectures.zamba import HYBRID, shared, wide_attention, wide_heads
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown

# Hybrid layers of the published 2.7B: the default, whatever num_hidden_layers says.
HYBRIDS = (6, 12, 18, 24, 30, 36, 42, 47, 51)


@architecture(
    "zamba2",
    "Zamba2ForCausalLM",
    running={"chunk_size": nonnegative(256)},
    aliases={"layer_types": "layers_block_type", "head_dim": "attention_head_dim"},
    vocab_size=32000,
    hidden_size=2560,
    intermediate_size=optional(),
    num_hidden_layers=54,
    layers_block_type=None,
    hybrid_layer_ids=None,
    attention_hidden_size=optional(),
    num_attention_heads=32,
    attention_head_dim=optional(),
    num_key_value_heads=optional(),
    n_mamba_heads=8,
    mamba_ngroups=1,
    mamba_d_state=64,
    mamba_d_conv=4,
    mamba_expand=2,
    num_mem_blocks=1,
    adapter_rank=128,
    use_shared_attention_adapter=False,
    add_bias_linear=False,
    tie_word_embeddings=True,
)
def zamba2(c: Config) -> nn.Model:
    kinds = _kinds(c)
    held = [number for number, kind in enumerate(kinds) if kind == HYBRID]
    blocks = min(int(c.num_mem_blocks), len(held))
    count = _adapted(c, len(held))
    scan = nn.Module(mamba=_mamba(c), input_layernorm=nn.RMSNorm(c.hidden_size))

    def layer(number: int | None) -> nn.Module:
        """Return Mamba 2, after the shared block with this number, if any."""
        if number is None:
            return scan
        turns = range(number, count, int(c.num_mem_blocks))  # hybrid layers that run this block
        return nn.Module(
            shared_transformer=shared(c, f"model.layers.{held[number]}.shared_transformer", **_transformer(c, turns)),
            linear=nn.Linear(c.hidden_size, c.hidden_size, bias=False),
            mamba_decoder=scan,
        )

    places = {number: place % blocks for place, number in enumerate(held)}
    # A layer that owns a shared block is a run of its own.
    each = ((places.get(number), number in held[:blocks]) for number in range(len(kinds)))
    model = kit.frame(c, kit.in_turns(each, lambda place, _: layer(place), depth=c.num_hidden_layers))
    if len(held) > blocks:
        return model.replace(irregular="each layer runs only its own adapter of a shared block")
    return model


def _kinds(c: Config) -> list[str]:
    if c.layers_block_type is None and c.num_hidden_layers != 54:
        raise c.refuse(f"layers_block_type must list the kind of each of the {int(c.num_hidden_layers)} layers")
    return kit.listed(
        c, "layers_block_type", (kit.LINEAR, HYBRID), lambda layer: HYBRID if layer in HYBRIDS else kit.LINEAR
    )


def _adapted(c: Config, held: int) -> int:
    """Number of hybrid layers with adapters: all, or as many as a saved config lists."""
    listed = c.hybrid_layer_ids
    if listed is not None and not isinstance(listed, list):
        raise c.refuse(f"hybrid_layer_ids is {shown(listed)}, expected a list of layers, or null")
    return held if listed is None else len(listed)


def _mamba(c: Config) -> nn.Scan:
    return mamba2(
        c.hidden_size,
        c.mamba_expand * c.hidden_size,
        c.n_mamba_heads,
        groups=c.mamba_ngroups,
        rows=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        chunk=c.chunk_size,
        conv_bias=True,
        bias=c.add_bias_linear,
    )


def _transformer(c: Config, turns: range) -> dict[str, nn.Module]:
    """Attention and MLP, each after a norm, with low-rank adapters for each of `turns`."""
    d, inner, bias = c.hidden_size, c.intermediate_size or 4 * c.hidden_size, c.add_bias_linear
    reads, runs = wide_heads(c)
    names = ("q", "k", "v") if c.use_shared_attention_adapter else ()
    adapters = {f"linear_{name}_adapter_list": _adapters(turns, reads, c.adapter_rank, reads) for name in names}
    return {
        "self_attn": wide_attention(c, runs, reads, **adapters),
        "feed_forward": nn.MLP(
            gate_up_proj=nn.Linear(d, 2 * inner, bias=bias),
            down_proj=nn.Linear(inner, d, bias=bias),
            gate_up_proj_adapter_list=_adapters(turns, d, c.adapter_rank, 2 * inner),
        ),
        "input_layernorm": nn.RMSNorm(reads),
        "pre_ff_layernorm": nn.RMSNorm(d),
    }


def _adapters(turns: range, reads: int, narrow: int, gives: int) -> nn.Module:
    """Low-rank adapters, numbered by hybrid layer; those of other blocks are empty."""
    pair = {"0": nn.Linear(reads, narrow, bias=False), "1": nn.Linear(narrow, gives, bias=False)}
    return nn.Module(**{str(turn): nn.Module(**pair) for turn in turns})
