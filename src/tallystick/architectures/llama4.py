"""Llama 4 (Meta 2025, "The Llama 4 herd"): the language model alone, as the causal language model of this type is built."""

from tallystick.architectures.llama4_text import llama4_text
from tallystick.blueprint import Config, Model, architecture, part_of


@architecture("llama4", "Llama4ForCausalLM", scored=False, parts={"text_config": part_of("llama4_text")})
def llama4(c: Config) -> Model:
    return llama4_text(c.part("text_config"))
