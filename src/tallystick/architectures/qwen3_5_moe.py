"""Qwen3.5 with experts (Qwen Team 2026): text model and vision tower.

`Qwen3_5MoeForCausalLM` is the text model; `Qwen3_5MoeForConditionalGeneration` adds Qwen3.5's
vision tower.
"""

from tallystick.architectures.qwen3_5 import whole
from tallystick.architectures.qwen3_5_moe_text import qwen3_5_moe_text
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, part_of


@architecture(
    "qwen3_5_moe", "Qwen3_5MoeForCausalLM", variants=whole(), parts={"text_config": part_of("qwen3_5_moe_text")}
)
def qwen3_5_moe(c: Config) -> nn.Model:
    return qwen3_5_moe_text(c.part("text_config"))
