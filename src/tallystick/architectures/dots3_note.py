"""dots3.note (Dots Studio 2026): text model; vision and audio towers.

`...ForCausalLM` is the text model; `...ForConditionalGeneration` adds the towers.
"""

from tallystick.architectures.dots3_note_text import dots3_note_text
from tallystick.architectures.kit.dots3_towers import AUDIO_CONFIG, VISION_CONFIG, ears, eyes
from tallystick.architectures.kit.towers import WHOLE, behind
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant, architecture, part_of

TEXT = part_of("dots3_note_text")


def _whole(c: Config, text: nn.Model) -> nn.Model:
    width = c.part("text_config").hidden_size
    sees, hears = eyes(c.part("vision_config"), width), ears(c.part("audio_config"), width)
    if not c.published:
        return behind(c, text, vision_tower=sees, audio_tower=hears)
    tie = ("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None
    return nn.Model(**text.children, vision_encoder=sees, audio_encoder=hears, tie=tie)


SEEING = ModelVariant(
    _whole, WHOLE, {"tie_word_embeddings": False}, parts={"vision_config": VISION_CONFIG, "audio_config": AUDIO_CONFIG}
)


# Published configs hold the text model's keys at the top level, next to the towers' configs.
@architecture(
    "dots3_note",
    "Dots3NoteForCausalLM",
    variants={"ForConditionalGeneration": SEEING},
    parts={"text_config": TEXT._replace(at_outer_level=True)},
)
def dots3_note(c: Config) -> nn.Model:
    return dots3_note_text(c.part("text_config"))
