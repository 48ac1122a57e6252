"""What a type has where its config says nothing is what transformers' class of configs has."""

from __future__ import annotations

from typing import Any

import pytest

from native import LACKING, NATIVE, count, default_config
from tallystick import architectures
from tallystick.core.config import Key


def declares(model_type: str, key: str) -> bool:
    family = architectures.find(model_type)
    return key in family.keys or key in family.running


# Which transformers' class sets anew when it is made, from other keys, or from nothing stated of a
# part.
COMPUTED = {
    "bailing_hybrid": {"head_dim"},
    "hrm_text": {"num_hidden_layers"},
    "qwen2_moe": {"sliding_window"},
    "got_ocr2": {"text_config"},
    "moss_transcribe_diarize": {"text_config"},
}
WINDOWED = ("sliding", "chunked")  # how the kinds of layers with a window are named
ALL_WINDOWED = {"deepseek_v4"}  # whatever else its layers see
LISTED = [name for name in NATIVE if name not in ALL_WINDOWED and declares(name, "layer_types")]


def stated(model_type: str) -> dict[str, int]:
    """The positive integers that a type or a class of it has by default, by their keys."""
    family = architectures.find(model_type)
    keys = dict(family.keys) | dict(family.running)
    for variant in (family.variants or {}).values():
        keys |= dict(variant.keys)
        keys |= {f"{part}.{key}": default for part, of in variant.parts.items() for key, default in of.keys.items()}
    values = {key: default.default if isinstance(default, Key) else default for key, default in keys.items()}
    return {
        key: value
        for key, value in values.items()
        if type(value) is int and value > 0 and not {key, key.partition(".")[0]} & COMPUTED.get(model_type, set())
    }


def of_config(config: Any, key: str) -> Any:
    """What a config of transformers has under a dotted key, or under the name that the key is an
    alias of; where layers differ, what its class has.
    """
    for name in key.split("."):
        try:
            config = config.get(name) if isinstance(config, dict) else getattr(config, name, None)
        except RuntimeError:  # layers differ
            config = getattr(type(config), name, None)
    return config


@pytest.mark.parametrize("model_type", NATIVE)
def test_every_size_is_that_of_its_class(model_type: str):
    """Those too that change no tensor, and those of other classes than the language model."""
    ours, config = stated(model_type), default_config(model_type)
    theirs = {key: value for key in ours if type(value := of_config(config, key)) is int}
    assert {key: ours[key] for key in theirs} == theirs


@pytest.mark.parametrize("model_type", LISTED)
def test_as_many_layers_have_a_window(model_type: str):
    kinds = default_config(model_type).layer_types
    ledger = count({"model_type": model_type, **LACKING.get(model_type, {})})
    ours = [layers for one in ledger.attending for window, layers in one.windows().items() if window is not None]
    assert sum(ours) == sum(any(word in kind for word in WINDOWED) for kind in kinds)
