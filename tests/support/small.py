"""Small models of the types that transformers knows: a type's default config with its sizes cut,
and each kind of layer kept.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tallystick.live.shrink_config import cut

transformers.logging.set_verbosity_error()

CAUSAL = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

# Those that transformers 5.23 does not build from any config made here, and why.
IMPOSSIBLE = {
    "cohere_compass_text": "its default config lacks a kind of layer that it reads",
    "dbrx": "its attention reads a rope_theta that its config class does not have",
    "gemma3n": "its vision tower is timm's, which is no dependency of transformers",
    "gemma4_assistant": "its default config contradicts itself",
    "gemma4_unified_assistant": "its default config contradicts itself",
    "musicgen": "its causal model takes the config of its decoder, which the family does not hand on",
    "musicgen_melody": "as musicgen",
}

FLAG = "tie_word_embeddings"


def small_model(model_type: str, *, tied: bool | None = None, auto: str = "AutoModelForCausalLM") -> Any:
    """The language model of a type, with random weights.

    Args:
        model_type: what transformers calls it.
        tied: what the config says, at its top and in its parts; None leaves it as the type has it.
        auto: the family of transformers that builds it.
    """
    values = cut(transformers.AutoConfig.for_model(model_type).to_dict())
    if tied is not None:
        for part in (values, *(part for part in values.values() if isinstance(part, dict) and FLAG in part)):
            part[FLAG] = tied
    config = transformers.AutoConfig.for_model(**{**values, "model_type": model_type})
    torch.manual_seed(0)
    return getattr(transformers, auto).from_config(config)
