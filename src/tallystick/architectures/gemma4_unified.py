"""Gemma 4 12B (Gemma Team 2026): image patches and audio frames projected without towers."""

from tallystick.architectures.gemma4 import embedder
from tallystick.architectures.gemma4_unified_text import gemma4_unified_text
from tallystick.architectures.kit.towers import behind
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, architecture, part_of

VISION_CONFIG = NestedConfig(
    {
        "patch_size": 16,
        "pooling_kernel_size": 3,
        "mm_embed_dim": 3840,
        "mm_posemb_size": 1120,
        "output_proj_dims": 3840,
    },
    optional=True,
)
AUDIO_CONFIG = NestedConfig({"audio_embed_dim": 640}, optional=True)


@architecture(
    "gemma4_unified",
    "Gemma4UnifiedForConditionalGeneration",
    parts={
        "text_config": part_of("gemma4_unified_text", tied_above=True),
        "vision_config": VISION_CONFIG,
        "audio_config": AUDIO_CONFIG,
    },
    tie_word_embeddings=True,
)
def gemma4_unified(c: Config) -> nn.Model:
    text, hears = c.part("text_config"), c.part("audio_config")
    return behind(
        c,
        gemma4_unified_text(text),
        embed_vision=_patches(c.part("vision_config"), text) if c.vision_config is not None else None,
        embed_audio=embedder(hears.audio_embed_dim, text) if c.audio_config is not None else None,
    )


def _patches(c: Config, text: Config) -> nn.Tower:
    """Square RGB patches, with two learned positions each."""
    side, d = c.patch_size * c.pooling_kernel_size, c.mm_embed_dim
    pixels = side * side * 3
    return nn.Tower(
        patch_ln1=nn.LayerNorm(pixels),
        patch_dense=nn.Linear(pixels, d),
        patch_ln2=nn.LayerNorm(d),
        pos_embedding=nn.Parameter((c.mm_posemb_size, 2, d), "position_embedding"),
        pos_norm=nn.LayerNorm(d),
        multimodal_embedder=embedder(c.output_proj_dims, text),
    )
