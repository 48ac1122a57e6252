"""Emu3 (BAAI 2024, "Emu3: Next-Token Prediction is All You Need"): the language model alone, of Llama's tensors, without what makes tokens of images."""

from tallystick.architectures.granite import granite
from tallystick.blueprint import Config, Model, architecture, maybe, part_of

TEXT = part_of(
    "granite",
    vocab_size=184622,
    intermediate_size=14336,
    num_key_value_heads=maybe(8),
)


@architecture("emu3", "Emu3ForCausalLM", scored=False, parts={"text_config": TEXT})
def emu3(c: Config) -> Model:
    return granite(c.part("text_config"))
