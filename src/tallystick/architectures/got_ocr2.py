"""GOT-OCR 2: ViTDet's vision tower, as in Segment Anything, and Qwen2.

Source: Wei et al. 2024, "General OCR Theory".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.towers import behind, conv
from tallystick.architectures.qwen2 import qwen2
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, architecture, nonnegative, part_of

VISION_CONFIG = NestedConfig(
    {
        "hidden_size": 768,
        "output_channels": 256,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_channels": 3,
        "image_size": 1024,
        "patch_size": 16,
        "qkv_bias": True,
        "use_abs_pos": True,
        "use_rel_pos": True,
        "window_size": nonnegative(14),
        "global_attn_indexes": None,
        "mlp_dim": 3072,
    }
)
TEXT = part_of(
    "qwen2",
    tied_above=True,
    own_type=True,
    unstated={
        "vocab_size": 151860,
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
    },
)
WHOLE = [2, 5, 8, 11]  # layers with global attention; the others use a window


@architecture(
    "got_ocr2",
    "GotOcr2ForConditionalGeneration",
    parts={"text_config": TEXT, "vision_config": VISION_CONFIG},
    tie_word_embeddings=True,
)
def got_ocr2(c: Config) -> nn.Model:
    text, vision = c.part("text_config"), c.part("vision_config")
    d, channels = text.hidden_size, vision.output_channels
    return behind(
        c,
        qwen2(text),
        apart=True,
        vision_tower=_vitdet(vision),
        multi_modal_projector=nn.Tower(
            conv_upsampler1=conv(channels, 2 * channels, 3, 3, bias=False),
            conv_upsampler2=conv(2 * channels, d, 3, 3, bias=False),
            multimodal_projector=nn.Linear(d, d),
        ),
    )


def _vitdet(c: Config) -> nn.Tower:
    """The ViTDet tower.

    Source: Li et al. 2022, "Exploring Plain Vision Transformer Backbones for Object Detection".
    """
    d, out, across = c.hidden_size, c.output_channels, kit.rounded(c.image_size, c.patch_size)
    listed = WHOLE if c.global_attn_indexes is None else c.global_attn_indexes
    if not isinstance(listed, list) or not all(type(layer) is int for layer in listed):
        raise c.refuse("global_attn_indexes must list the numbers of the layers that see the whole image")
    return nn.Tower(
        patch_embed=nn.Module(projection=conv(c.num_channels, d, c.patch_size, c.patch_size)),
        pos_embed=nn.Parameter((1, across, across, d), "position_embedding") if c.use_abs_pos else None,
        layers=kit.two_kinds(c, listed, _block(c, across), _block(c, c.window_size or across)),
        neck=nn.Module(
            conv1=conv(d, out, 1, 1, bias=False),
            layer_norm1=nn.LayerNorm(out),
            conv2=conv(out, out, 3, 3, bias=False),
            layer_norm2=nn.LayerNorm(out),
        ),
    )


def _block(c: Config, sees: int) -> nn.Module:
    """A layer that attends within `sees` × `sees` patches; relative positions per axis."""
    d, size = c.hidden_size, kit.rounded(c.hidden_size, c.num_attention_heads)
    apart = nn.Parameter((2 * sees - 1, size), "position_embedding") if c.use_rel_pos else None
    return nn.Module(
        layer_norm1=nn.LayerNorm(d),
        attn=nn.Attention(
            qkv=nn.Linear(d, 3 * d, bias=c.qkv_bias), proj=nn.Linear(d, d), rel_pos_h=apart, rel_pos_w=apart
        ),
        layer_norm2=nn.LayerNorm(d),
        mlp=kit.plain_mlp(d, c.mlp_dim, "gelu", "lin1", "lin2"),
    )
