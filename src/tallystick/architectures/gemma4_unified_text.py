"""Gemma 4 12B without eyes and ears (Gemma Team 2026): as `gemma4_text`, without embeddings for each layer and without experts."""

from tallystick.architectures.gemma4_text import KEYS, RUNNING, of_two_kinds
from tallystick.blueprint import Config, Model, architecture, natural


@architecture(
    "gemma4_unified_text",
    "Gemma4UnifiedForCausalLM",
    running={**RUNNING, "sliding_window": natural(1024), "use_bidirectional_attention": "vision"},
    **KEYS,
)
def gemma4_unified_text(c: Config) -> Model:
    return of_two_kinds(c, {})
