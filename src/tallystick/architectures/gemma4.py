"""Gemma 4 (Gemma Team 2026): the text model and the towers that the config has."""

from tallystick.architectures.gemma4_text import gemma4_text
from tallystick.architectures.kit.gemma4_towers import AUDIO_CONFIG, VISION_CONFIG, ears, eyes
from tallystick.architectures.kit.towers import behind
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, part_of


@architecture(
    "gemma4",
    "Gemma4ForConditionalGeneration",
    parts={
        "text_config": part_of("gemma4_text", tied_above=True),
        "vision_config": VISION_CONFIG,
        "audio_config": AUDIO_CONFIG,
    },
    tie_word_embeddings=True,
)
def gemma4(c: Config) -> nn.Model:
    text, sees, hears = c.part("text_config"), c.part("vision_config"), c.part("audio_config")
    return behind(
        c,
        gemma4_text(text),
        vision_tower=eyes(sees) if c.vision_config is not None else None,
        embed_vision=embedder(sees.hidden_size, text) if c.vision_config is not None else None,
        audio_tower=ears(hears) if c.audio_config is not None else None,
        embed_audio=embedder(hears.output_proj_dims, text) if c.audio_config is not None else None,
    )


def embedder(given: int, text: Config) -> nn.Tower:
    """Return a projection of a tower's vectors to the text width, after a norm without scale."""
    return nn.Tower(embedding_projection=nn.Linear(given, text.hidden_size, bias=False))
