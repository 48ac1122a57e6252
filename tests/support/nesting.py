"""Configs that nest others, with dotted keys for those: ``text_config.hidden_size``."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

ABSENT = object()


def dotted(values: Config) -> Config:
    """A config with the keys of its parts beside its own: ``text_config.hidden_size``."""
    parts = {
        name: part
        for name, part in values.items()
        if part and isinstance(part, dict) and name.endswith("_config") and name != "per_layer_config"
    }
    inside = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.items()}
    return {**{name: value for name, value in values.items() if name not in parts}, **inside}


def nested(values: Config) -> Config:
    """The same config as config.json holds it."""
    whole = {name: value for name, value in values.items() if "." not in name}
    for name, value in values.items():
        part, dot, key = name.partition(".")
        if dot and values.get(part, ABSENT) is not None:
            whole[part] = {**(whole.get(part) or {}), key: value}
    return whole
