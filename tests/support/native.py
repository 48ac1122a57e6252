"""The native types: a small config of each, and its ledger compared with the model that is really
built.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import configs
import drawing
import measurements
import tallystick
from holding import Truth
from measurements import measured
from nesting import nested
from tallystick import architectures
from tallystick.core.ledger import Ledger
from tallystick.sources.configs.config import ledger_from_config

NATIVE = sorted(configs.CONFIGS)
SLOW = drawing.some(NATIVE, 60)  # types of tests that build many models of each

# What the default config of a type lacks: transformers builds no model of it.
LACKING = {model_type: family.lacking for model_type, family in configs.FAMILIES.items() if family.lacking}


def small(model_type: str, **more: Any) -> dict[str, Any]:
    """A complete config of a few thousand parameters."""
    values = {**configs.FAMILIES[model_type].lacking, **configs.FAMILIES[model_type].small}
    family = architectures.find(model_type)
    known = {*family.keys, *family.running, "attention_types", "pad_token_id"}  # the first lists the layers
    return {
        "model_type": model_type,
        "pad_token_id": None,
        **{k: v for k, v in values.items() if k in known or k.endswith(".pad_token_id")},
        **more,
    }


def other_values(value: object) -> list[object]:
    """What a bool, an integer or a null could be instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value, 0]
    return [True, False, 1, 2, 4]


def count(values: dict[str, Any], **more: Any) -> Ledger:
    return ledger_from_config(values, {}, source="test", **more)


def held(ledger: Ledger) -> Truth:
    """What our ledger says that a model holds."""
    entries, totals = ledger.entries, ledger.totals
    return Truth(
        shapes={entry.name: tuple(map(int, entry.shape)) for entry in entries if not entry.buffer},
        ties={frozenset(tie.names) for tie in ledger.ties},
        buffers={entry.name: tuple(map(int, entry.shape)) for entry in entries if entry.buffer},
        total=int(ledger.total),
        trainable=int(totals["trainable"]),
    )


def default_config(model_type: str) -> Any:
    """transformers' config of a type with nothing set but what it lacks."""
    import transformers

    return transformers.AutoConfig.for_model(model_type, **nested(LACKING.get(model_type, {})))


def assert_equal(values: dict[str, Any], true: Truth | str | None = None) -> Ledger:
    """Our ledger of a config says what the built model holds, to the last tensor.

    `true` is what the model holds, or the digest of that; where neither is given, the committed
    digest.
    """
    ledger = count(values)
    entries, totals = ledger.entries, ledger.totals
    assert len({entry.name for entry in entries}) == len(entries), values
    ours = held(ledger)
    true = true or measured("reference:model", values)
    if isinstance(true, Truth):
        assert_same(ours, true, values)
    elif ours.digest != true:
        assert measurements.MODE != "none", f"not what transformers builds, by tests/measured/reference.json: {values}"
        from reference import truth

        assert_same(ours, truth(values), values)
        raise AssertionError(
            f"tests/measured/reference.json says {true} of what transformers builds as we count it: {values}"
        )

    assert totals["unique"] == ours.total, values
    assert totals["by_name"] == sum(map(math.prod, ours.shapes.values())), values
    assert totals["buffers"] == sum(map(math.prod, ours.buffers.values())), values
    assert totals["embedding"] + totals["non_embedding"] == ours.total, values
    assert sum(ledger.by("role").values()) == sum(ledger.by("tensor").values()) == ours.total, values
    assert 0 < totals["active"] <= ours.total, values
    return ledger


def assert_same(ours: Truth, true: Truth, values: dict[str, Any]) -> None:
    """Fact by fact, so that the first that differs is shown."""
    assert ours.shapes == true.shapes, values
    assert ours.ties == true.ties, values
    assert ours.buffers == true.buffers, values
    assert (ours.total, ours.trainable) == (true.total, true.trainable), values


def assert_nothing_is_lacking(model: Any, folder: Path) -> None:
    """A saved folder and the living model agree with what the config says, whose closed form has
    the same value.
    """
    model.save_pretrained(folder)
    total = sum(parameter.numel() for parameter in model.parameters())
    for ledger in (tallystick.count(folder), tallystick.count(model)):
        assert not ledger.mismatches
        assert ledger.total == ledger.described.total == total
        assert tallystick.formula(ledger).value == total
    assert tallystick.ties(folder).verdict == "consistent"
