"""Fuyu: Persimmon with image patches projected into the token sequence.

Source: Adept 2023, "Fuyu-8B: A Multimodal Architecture for AI Agents".
"""

from tallystick.architectures.kit.towers import behind
from tallystick.architectures.persimmon import persimmon
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, part_of

TEXT = part_of("persimmon", tied_above=True, own_type=True)


@architecture(
    "fuyu",
    "FuyuForCausalLM",
    # Published configs hold the text model's keys at the top level.
    parts={"text_config": TEXT._replace(at_outer_level=True)},
    patch_size=30,
    num_channels=3,
    tie_word_embeddings=False,
)
def fuyu(c: Config) -> nn.Model:
    text = c.part("text_config")
    pixels = c.patch_size * c.patch_size * c.num_channels
    return behind(
        c, persimmon(text), apart=True, vision_embed_tokens=nn.Tower(**nn.Linear(pixels, text.hidden_size).children)
    )
