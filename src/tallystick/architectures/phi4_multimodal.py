"""Phi-4-multimodal: Phi-3's layers, a vision tower and an audio tower.

Source: Microsoft 2025, "Phi-4-Mini Technical Report".
"""

import math

from tallystick.architectures import kit
from tallystick.architectures.kit.towers import SIGLIP, conv, siglip
from tallystick.architectures.phi3 import layer
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import ceil
from tallystick.core.registry import Config, NestedConfig, architecture, nonnegative, optional

VISION_CONFIG = NestedConfig(
    {
        **{key: default for key, default in SIGLIP.keys.items() if key != "vision_use_head"},
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "image_size": 448,
        "patch_size": 14,
    }
)
AUDIO_CONFIG = NestedConfig(
    {
        "hidden_size": 1024,
        "intermediate_size": 1536,
        "num_blocks": 24,
        "num_attention_heads": 16,
        "head_dim": optional(),
        "ext_pw_out_channel": 1024,
        "depthwise_separable_out_channel": 1024,
        "depthwise_multiplier": 1,
        "kernel_size": 3,
        "input_size": 80,
        "time_reduction": 8,
        "nemo_final_size": optional(),
        "bias_max_distance": 1000,
        "bias_symmetric": False,
        "nemo_conv_channels": 1024,
        "downsample_rate": 1,
    }
)


@architecture(
    "phi4_multimodal",
    "Phi4MultimodalForCausalLM",
    parts={"vision_config": VISION_CONFIG, "audio_config": AUDIO_CONFIG},
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(None, nullable=True)},
    vocab_size=200064,
    hidden_size=3072,
    intermediate_size=8192,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(8),
    head_dim=optional(),
    tie_word_embeddings=False,
)
def phi4_multimodal(c: Config) -> nn.Model:
    d, vision, audio = c.hidden_size, c.part("vision_config"), c.part("audio_config")
    seen, heard = vision.hidden_size, audio.hidden_size * audio.downsample_rate
    return kit.decoder(
        c,
        layer(c),
        embed_tokens_extend=nn.Tower(
            image_embed=nn.Module(
                global_img_feature_extensor=nn.Parameter((1, 1, seen)),
                sub_img_feature_extensor=nn.Parameter((1, 1, 1, seen)),
                img_processor=siglip(vision, pooled=True),
                img_projection_up=nn.Linear(seen, d),
                img_projection_down=nn.Linear(d, d),
            ),
            audio_embed=nn.Module(
                encoder=_conformer(audio),
                up_proj_for_speech=nn.Linear(heard, d),
                down_proj_for_speech=nn.Linear(d, d),
                up_proj_for_vision_speech=nn.Linear(heard, d),
                down_proj_for_vision_speech=nn.Linear(d, d),
            ),
        ),
    )


def _conformer(c: Config) -> nn.Module:
    """A conformer (Gulati et al. 2020) with input statistics and relative position biases."""
    d, heads = c.hidden_size, c.num_attention_heads
    size = c.head_dim or kit.rounded(d, heads)
    each = nn.Linear(d, heads * size)
    block = nn.Module(
        feed_forward_in=_feed_forward(c),
        self_attn=nn.Attention(q_proj=each, k_proj=each, v_proj=each, o_proj=nn.Linear(heads * size, d)),
        conv=_convolution(c),
        feed_forward_out=_feed_forward(c),
        layer_norm_att=nn.LayerNorm(d),
        layer_norm=nn.LayerNorm(d),
    )
    distances = c.bias_max_distance * (1 if c.bias_symmetric else 2)
    return nn.Module(
        encoder_embedding=nn.Module(global_mean=nn.Buffer(c.input_size), global_invstd=nn.Buffer(c.input_size)),
        embed=_shortened(c),
        relative_attention_bias_layer=nn.Module(
            bias_values=nn.Module(weight=nn.Parameter((distances, heads), "attention"))
        ),
        encoders=nn.Repeat(c.num_blocks, block),
    )


def _feed_forward(c: Config) -> nn.MLP:
    d, inner = c.hidden_size, c.intermediate_size
    return nn.MLP(layer_norm=nn.LayerNorm(d), gate_up_proj=nn.Linear(d, 2 * inner), down_proj=nn.Linear(inner, d))


def _convolution(c: Config) -> nn.Module:
    d, out = c.hidden_size, c.ext_pw_out_channel
    wider = d * c.depthwise_multiplier
    bias = nn.Parameter((1, out, 1), "conv")
    return nn.Module(
        layer_norm=nn.LayerNorm(d),
        glu=nn.Module(b1=bias, b2=bias, ext_pw_conv_1d=conv(d, 2 * out, 1)),
        dw_sep_conv_1d=nn.Module(
            dw_conv=conv(1, wider, c.kernel_size),
            pw_conv=conv(wider, c.depthwise_separable_out_channel, 1),
        ),
        ext_pw_conv_1d=conv(d, out, 1),
    )


def _shortened(c: Config) -> nn.Module:
    """Convolutions that halve time and frequency until `time_reduction` frames are one."""
    width, times = c.nemo_conv_channels, int(c.time_reduction)
    if times % 2:
        raise c.refuse(f"time_reduction = {times} is not even", code="indivisible")
    halvings = int(math.log2(times))
    convs: dict[str, nn.Module] = {"0": conv(1, width, 3, 3)}
    for halving in range(1, halvings):  # every third index is an activation
        convs |= {f"{3 * halving - 1}": conv(1, width, 3, 3), f"{3 * halving}": conv(width, width, 1, 1)}
    left = c.nemo_final_size or ceil(c.input_size, 2**halvings)
    return nn.Module(conv=nn.Module(**convs), out=nn.Linear(width * left, c.hidden_size))
