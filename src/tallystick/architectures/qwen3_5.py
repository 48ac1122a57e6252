"""Qwen3.5 (Qwen Team 2026), dense: the language model alone, as the causal language model of this type is built."""

from tallystick.architectures.qwen3_5_text import qwen3_5_text
from tallystick.blueprint import Config, Model, architecture, part_of


@architecture("qwen3_5", "Qwen3_5ForCausalLM", scored=False, parts={"text_config": part_of("qwen3_5_text")})
def qwen3_5(c: Config) -> Model:
    return qwen3_5_text(c.part("text_config"))
