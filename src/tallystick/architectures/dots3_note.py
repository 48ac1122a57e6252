"""dots3.note (Dots Studio 2026): the language model alone, as the causal language model of this type is built."""

from tallystick.architectures.dots3_note_text import dots3_note_text
from tallystick.blueprint import Config, Model, architecture, part_of

TEXT = part_of("dots3_note_text")


# Published configs hold the keys of the language model beside those of what sees and hears.
@architecture("dots3_note", "Dots3NoteForCausalLM", scored=False, parts={"text_config": TEXT._replace(beside=True)})
def dots3_note(c: Config) -> Model:
    return dots3_note_text(c.part("text_config"))
