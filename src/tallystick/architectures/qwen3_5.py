"""Qwen3.5, dense (Qwen Team 2026): text model and vision tower.

`Qwen3_5ForCausalLM` is the text model; `Qwen3_5ForConditionalGeneration` adds the vision tower.
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.towers import behind, conv, seeing
from tallystick.architectures.qwen3_5_text import qwen3_5_text
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant, NestedConfig, architecture, part_of

VISION_CONFIG = NestedConfig(
    {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "in_channels": 3,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 3584,
        "num_position_embeddings": 2304,
    },
    aliases={"num_hidden_layers": "depth"},
)


def whole() -> dict[str, ModelVariant]:
    """Return the multimodal variants."""
    return seeing(_whole, {"tie_word_embeddings": False}, vision_config=VISION_CONFIG)


def _whole(c: Config, text: nn.Model) -> nn.Model:
    return behind(c, text, visual=_vision_tower(c.part("vision_config")))


@architecture("qwen3_5", "Qwen3_5ForCausalLM", variants=whole(), parts={"text_config": part_of("qwen3_5_text")})
def qwen3_5(c: Config) -> nn.Model:
    return qwen3_5_text(c.part("text_config"))


def _vision_tower(c: Config) -> nn.Tower:
    """The vision tower: spatio-temporal patches, and a merger of neighbouring patches."""
    d, size, merged = c.hidden_size, c.patch_size, c.hidden_size * c.spatial_merge_size * c.spatial_merge_size
    block = nn.Module(
        norm1=nn.LayerNorm(d),
        norm2=nn.LayerNorm(d),
        attn=nn.Attention(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d)),
        mlp=kit.plain_mlp(d, c.intermediate_size, "gelu", "linear_fc1", "linear_fc2"),
    )
    return nn.Tower(
        patch_embed=nn.Module(proj=conv(c.in_channels, d, c.temporal_patch_size, size, size)),
        pos_embed=nn.PositionEmbedding(c.num_position_embeddings, d),
        blocks=nn.Repeat(c.depth, block),
        merger=nn.Module(
            norm=nn.LayerNorm(d), linear_fc1=nn.Linear(merged, merged), linear_fc2=nn.Linear(merged, c.out_hidden_size)
        ),
    )
