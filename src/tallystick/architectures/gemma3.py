"""Gemma 3, multimodal: SigLIP's vision tower, a projector and the text model.

Source: Gemma Team 2025, "Gemma 3 Technical Report".
"""

from tallystick.architectures.gemma3_text import gemma3_text
from tallystick.architectures.kit.towers import SIGLIP, behind, siglip
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, part_of


@architecture(
    "gemma3",
    "Gemma3ForConditionalGeneration",
    parts={"text_config": part_of("gemma3_text", tied_above=True), "vision_config": SIGLIP},
    running={"mm_tokens_per_image": 256},
    tie_word_embeddings=True,
)
def gemma3(c: Config) -> nn.Model:
    text, vision = c.part("text_config"), c.part("vision_config")
    given = vision.hidden_size
    return behind(
        c,
        gemma3_text(text),
        apart=True,
        vision_tower=siglip(vision, pooled=vision.vision_use_head),
        multi_modal_projector=nn.Tower(
            mm_input_projection_weight=nn.Parameter((given, text.hidden_size)),
            mm_soft_emb_norm=nn.RMSNorm(given),
        ),
    )
