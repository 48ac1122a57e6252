"""Gemma 4 12B's text model (Gemma Team 2026): `gemma4_text` without PLE and experts."""

from tallystick.architectures.gemma4_text import KEYS, RUNNING, of_two_kinds
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "gemma4_unified_text",
    "Gemma4UnifiedForCausalLM",
    running={**RUNNING, "sliding_window": nonnegative(1024), "use_bidirectional_attention": "vision"},
    **KEYS,
)
def gemma4_unified_text(c: Config) -> nn.Model:
    return of_two_kinds(c, {})
