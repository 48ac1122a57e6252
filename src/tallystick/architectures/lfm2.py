"""LFM2 (Liquid AI 2025, "LFM2 Technical Report"): gated short convolutions, some attention."""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import short_conv
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import ceil, floor
from tallystick.core.registry import Config, architecture, optional

CONV = "conv"


@architecture(
    "lfm2",
    "Lfm2ForCausalLM",
    aliases={"block_ff_dim": "intermediate_size", "tie_embedding": "tie_word_embeddings"},
    vocab_size=65536,
    hidden_size=2560,
    intermediate_size=12288,
    block_auto_adjust_ff_dim=True,
    block_ffn_dim_multiplier=1.0,
    block_multiple_of=256,
    num_hidden_layers=32,
    layer_types=None,
    full_attn_idxs=None,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=optional(),
    conv_L_cache=3,
    conv_bias=False,
    tie_word_embeddings=True,
)
def lfm2(c: Config) -> nn.Model:
    attending = _attending(c)
    kinds = kit.listed(
        c, "layer_types", (CONV, kit.FULL), lambda layer: kit.FULL if attending is None or layer in attending else CONV
    )
    mlp = gated(c, _inner(c))
    layers = kit.in_turns(kinds, lambda kind: block(c, mlp, **mixer(c, kind)), depth=c.num_hidden_layers)
    return kit.frame(c, layers, norm="embedding_norm")


def _attending(c: Config) -> list[int] | None:
    """Numbers of the attention layers; None: all."""
    listed = c.full_attn_idxs
    if listed is not None and not (isinstance(listed, list) and all(type(number) is int for number in listed)):
        raise c.refuse("full_attn_idxs must list the numbers of the layers that attend, or be null")
    return listed


def _inner(c: Config) -> int:
    """Width of the MLP: as stated, or two thirds of it, scaled and rounded up to a multiple."""
    inner: int = c.intermediate_size
    if not c.block_auto_adjust_ff_dim:
        return inner
    inner = floor(2 * inner, 3)
    if c.block_ffn_dim_multiplier != 1:
        inner = int(kit.times(c, inner, "block_ffn_dim_multiplier"))
    multiple: int = c.block_multiple_of
    return multiple * ceil(inner, multiple)


def gated(c: Config, inner: int) -> nn.MLP:
    """Return SwiGLU under Liquid's names; its activations are not modelled."""
    d = c.hidden_size
    return nn.MLP(
        w1=nn.Linear(d, inner, bias=False), w3=nn.Linear(d, inner, bias=False), w2=nn.Linear(inner, d, bias=False)
    )


def block(c: Config, mlp: nn.Module, **parts: nn.Module) -> nn.Module:
    """Return a block: a mixer and an MLP, each after a norm."""
    d = c.hidden_size
    return nn.Module(**parts, feed_forward=mlp, operator_norm=nn.RMSNorm(d), ffn_norm=nn.RMSNorm(d))


def mixer(c: Config, kind: str) -> dict[str, nn.Module]:
    """Return a layer's mixer (convolution or attention) by its name."""
    return {"conv": conv(c)} if kind == CONV else {"self_attn": _attention(c)}


def _attention(c: Config) -> nn.Attention:
    runs = kit.heads(c)
    return kit.attention(c, runs, output="out_proj", **kit.head_norms(runs, ("q_layernorm", "k_layernorm")))


def conv(c: Config) -> nn.Scan:
    """Return a gated short convolution; its cache is the last inputs alone."""
    d, bias = c.hidden_size, c.conv_bias
    return nn.Scan(
        nn.Recurrence(inputs=d * c.conv_L_cache, state=0, source="Liquid AI 2025, LFM2 Technical Report"),
        conv=short_conv(d, c.conv_L_cache, bias=bias),
        in_proj=nn.Linear(d, 3 * d, bias=bias),
        out_proj=nn.Linear(d, d, bias=bias),
    )
