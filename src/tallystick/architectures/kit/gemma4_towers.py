"""Gemma 4's vision tower and audio conformer (Gemma Team 2026)."""

from typing import Any

from tallystick.architectures.kit.attention import rounded
from tallystick.architectures.kit.towers import conv
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig

VISION_CONFIG = NestedConfig(
    {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 16,
        "num_attention_heads": 12,
        "num_key_value_heads": 12,
        "head_dim": 64,
        "patch_size": 16,
        "position_embedding_size": 10240,
        "use_clipped_linears": False,
        "standardize": False,
    },
    optional=True,
)
AUDIO_CONFIG = NestedConfig(
    {
        "hidden_size": 1024,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "conv_kernel_size": 5,
        "subsampling_conv_channels": (128, 32),
        "use_clipped_linears": True,
        "output_proj_dims": 1536,
    },
    optional=True,
)
PIXEL = 3  # colour channels


def eyes(c: Config) -> nn.Tower:
    """Return the vision tower: patches with learned positions, one table per axis."""
    d, size = c.hidden_size, c.head_dim
    queries, keys = c.num_attention_heads * size, c.num_key_value_heads * size
    inner, norm = c.intermediate_size, nn.RMSNorm(d)
    block = nn.Module(
        self_attn=nn.Attention(
            q_proj=_clipped(c, d, queries),
            k_proj=_clipped(c, d, keys),
            v_proj=_clipped(c, d, keys),
            o_proj=_clipped(c, queries, d),
            q_norm=nn.RMSNorm(size),
            k_norm=nn.RMSNorm(size),
        ),
        mlp=nn.MLP(gate_proj=_clipped(c, d, inner), up_proj=_clipped(c, d, inner), down_proj=_clipped(c, inner, d)),
        input_layernorm=norm,
        post_attention_layernorm=norm,
        pre_feedforward_layernorm=norm,
        post_feedforward_layernorm=norm,
    )
    return nn.Tower(
        patch_embedder=nn.Module(
            input_proj=nn.Linear(PIXEL * c.patch_size * c.patch_size, d, bias=False),
            position_embedding_table=nn.Parameter((2, c.position_embedding_size, d), "position_embedding"),
        ),
        encoder=nn.Module(layers=nn.Repeat(c.num_hidden_layers, block)),
        std_bias=nn.Buffer(d) if c.standardize else None,
        std_scale=nn.Buffer(d) if c.standardize else None,
    )


def ears(c: Config) -> nn.Tower:
    """Return the audio tower: a conformer.

    Source: Gulati et al. 2020, "Conformer: Convolution-augmented Transformer for Speech
    Recognition".
    """
    d, channels = c.hidden_size, c.subsampling_conv_channels
    if len(channels) != len(("first", "second")):
        raise c.refuse(f"subsampling_conv_channels lists {len(channels)} widths, expected 2")
    first, second = channels
    heads, norm = c.num_attention_heads, nn.RMSNorm(d)
    size = rounded(d, heads)
    each = _clipped(c, d, heads * size)
    block = nn.Module(
        feed_forward1=_feed_forward(c),
        feed_forward2=_feed_forward(c),
        self_attn=nn.Attention(
            q_proj=each,
            k_proj=each,
            v_proj=each,
            post=_clipped(c, d, d),
            relative_k_proj=nn.Linear(d, heads * size, bias=False),
            per_dim_scale=nn.Parameter((size,)),
        ),
        lconv1d=nn.Module(
            linear_start=_clipped(c, d, 2 * d),
            linear_end=_clipped(c, d, d),
            depthwise_conv1d=conv(1, d, c.conv_kernel_size, bias=False),
            pre_layer_norm=norm,
            conv_norm=norm,
        ),
        norm_pre_attn=norm,
        norm_post_attn=norm,
        norm_out=norm,
    )
    return nn.Tower(
        subsample_conv_projection=nn.Module(
            layer0=_halving(1, first),
            layer1=_halving(first, second),
            input_proj_linear=nn.Linear(rounded(first, 4) * second, d, bias=False),
        ),
        layers=nn.Repeat(c.num_hidden_layers, block),
        output_proj=nn.Linear(d, c.output_proj_dims),
    )


def _halving(inputs: int, outputs: int) -> nn.Module:
    return nn.Module(conv=conv(inputs, outputs, 3, 3, bias=False), norm=nn.LayerNorm(outputs, bias=False))


def _feed_forward(c: Config) -> nn.MLP:
    d = c.hidden_size
    return nn.MLP(
        ffw_layer_1=_clipped(c, d, 4 * d),
        ffw_layer_2=_clipped(c, 4 * d, d),
        pre_layer_norm=nn.RMSNorm(d),
        post_layer_norm=nn.RMSNorm(d),
    )


def _clipped(c: Config, inputs: int, outputs: int) -> nn.Module:
    """A linear layer whose input and output are clipped; the bounds are buffers."""
    bounds: dict[str, Any] = {f"{side}_{end}": nn.Buffer() for side in ("input", "output") for end in ("min", "max")}
    return nn.Module(linear=nn.Linear(inputs, outputs, bias=False), **(bounds if c.use_clipped_linears else {}))
