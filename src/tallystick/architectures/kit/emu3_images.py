"""Emu3's image tokenizer: a convolutional VQ-VAE (van den Oord et al. 2017)."""

import math
from collections.abc import Callable
from itertools import pairwise

from tallystick.architectures.kit.towers import conv
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, nonnegative
from tallystick.errors import shown

IMAGES = NestedConfig(
    {
        "codebook_size": 32768,
        "embed_dim": 4,
        "latent_channels": 4,
        "double_latent": False,
        "in_channels": 3,
        "out_channels": 3,
        "temporal_downsample_factor": 4,
        "base_channels": 256,
        "channel_multiplier": (1, 2, 2, 4),
        "num_res_blocks": nonnegative(2),
        "attn_resolutions": [3],
        "hidden_size": 1024,
        "num_attention_heads": 1,
    }
)
GROUPS = 32  # of the group norms
Norm = Callable[[int], nn.Module]


def images(c: Config) -> nn.Tower:
    """Return the VQ-VAE: encoder, decoder and codebook."""
    c.require_divisible("hidden_size", by="num_attention_heads")
    latent, codes = c.latent_channels, c.embed_dim
    return nn.Tower(
        encoder=_encoder(c),
        decoder=_decoder(c),
        quantize=nn.Module(embedding=nn.Module(weight=nn.Parameter((c.codebook_size, codes)))),
        quant_conv=_in_time(latent, codes, 3, 1, 1),
        post_quant_conv=_in_time(codes, latent, 3, 1, 1),
    )


def _encoder(c: Config) -> nn.Module:
    widths = _widths(c)
    out = 2 * c.latent_channels if c.double_latent else c.latent_channels
    first, last = c.base_channels, widths[-1]
    stages = {}
    for stage, (given, width) in enumerate(pairwise((first, *widths))):
        blocks = c.num_res_blocks
        further = stage < len(widths) - 1
        stages[str(stage)] = nn.Module(
            **_stage(c, stage, blocks, given, width, nn.LayerNorm),
            downsample=nn.Module(conv=conv(width if blocks else given, width if blocks else given, 3, 3))
            if further
            else None,
        )
    return nn.Module(
        conv_in=conv(c.in_channels, first, 3, 3),
        down_block=nn.Module(down=nn.Module(**stages)),
        middle_block=_middle(c, last, nn.LayerNorm),
        norm_out=nn.LayerNorm(last),
        conv_out=conv(last, out, 3, 3),
        time_conv=nn.Repeat(_halvings(c), nn.Module(conv=_in_time(out, out, 4, 3, 3))),
        time_res_stack=_moments(c, out),
    )


def _decoder(c: Config) -> nn.Module:
    widths, latent, codes = _widths(c), c.latent_channels, c.embed_dim
    last = widths[-1]

    def norm(width: int) -> nn.Module:
        """Return a spatial norm: convolutions of the codes give its scale and shift."""
        made = conv(codes, width, 1, 1)
        return nn.Module(norm_layer=nn.LayerNorm(width), conv_y=made, conv_b=made)

    stages = {}
    for stage, (width, given) in enumerate(pairwise((*widths, last))):
        stages[str(stage)] = nn.Module(
            **_stage(c, stage, c.num_res_blocks + 1, given, width, norm),
            upsample=nn.Module(conv=conv(width, width, 3, 3)) if stage else None,
        )
    return nn.Module(
        time_res_stack=_moments(c, latent),
        time_conv=nn.Repeat(_halvings(c), nn.Module(conv=_in_time(latent, latent, 3, 3, 3))),
        conv_in=conv(latent, last, 3, 3),
        middle_block=_middle(c, last, norm),
        up_block=nn.Module(up=nn.Module(**stages)),
        norm_out=norm(widths[0]),
        conv_out=conv(widths[0], c.out_channels, 3, 3),
    )


def _widths(c: Config) -> list[int]:
    """Channels of each stage."""
    widths = [c.base_channels * times for times in c.channel_multiplier]
    if not widths:
        raise c.refuse("channel_multiplier lists no stage")
    for width in (c.base_channels, *widths) if c.num_res_blocks else widths:
        if int(width) % GROUPS:
            raise c.refuse(
                f"base_channels = {int(c.base_channels)} makes a stage of {int(width)} channels, not divisible by"
                f" {GROUPS} groups",
                code="indivisible",
            )
    return widths


def _halvings(c: Config) -> int:
    """How often the temporal resolution is halved."""
    return int(math.log2(c.temporal_downsample_factor))


def _stage(c: Config, stage: int, blocks: int, given: int, width: int, norm: Norm) -> dict[str, nn.Node | None]:
    """Residual blocks of a stage, each with attention if the stage has it."""
    listed = c.attn_resolutions
    if not isinstance(listed, list) or not all(type(each) is int for each in listed):
        raise c.refuse(f"attn_resolutions is {shown(listed)}, expected a list of the numbers of stages")
    attends = stage in listed
    return {
        "block": nn.ModuleList((1, _block(given, width, norm)), (blocks - 1, _block(width, width, norm)))
        if blocks
        else None,
        "attn": nn.Repeat(blocks, _attention(c)) if attends else None,
        "attn_norms": nn.Repeat(blocks, norm(width)) if attends else None,
    }


def _middle(c: Config, width: int, norm: Norm) -> nn.Module:
    block = _block(width, width, norm)
    return nn.Module(block_1=block, attn_1=_attention(c), attn_norm=norm(width), block_2=block)


def _block(given: int, width: int, norm: Norm) -> nn.Module:
    """A residual block: two normed convolutions; a 1×1 shortcut if the width changes."""
    return nn.Module(
        norm1=norm(given),
        norm2=norm(width),
        conv1=conv(given, width, 3, 3),
        conv2=conv(width, width, 3, 3),
        nin_shortcut=conv(given, width, 1, 1) if given != width else None,
    )


def _attention(c: Config) -> nn.Attention:
    each = nn.Linear(c.hidden_size, c.hidden_size)
    return nn.Attention(k_proj=each, v_proj=each, q_proj=each, out_proj=each)


def _in_time(inputs: int, outputs: int, *kernel: int) -> nn.Module:
    return nn.Module(conv=conv(inputs, outputs, *kernel))


def _moments(c: Config, width: int) -> nn.ModuleList:
    """Temporal residual blocks with batch norms (running mean and variance are buffers)."""
    norm = nn.Module(
        **nn.LayerNorm(width).children,
        running_mean=nn.Buffer(width),
        running_var=nn.Buffer(width),
        num_batches_tracked=nn.Buffer(),
    )
    block = nn.Module(
        norm1=norm,
        conv1=_in_time(width, width, 3, 3, 3),
        norm2=norm,
        conv2=_in_time(width, width, 3, 3, 3),
    )
    return nn.Repeat(c.num_res_blocks, block)
