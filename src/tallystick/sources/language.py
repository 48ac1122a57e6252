"""The language model inside of a config that nests one, counted as a model of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick import architectures
from tallystick.blueprint import TIE, Architecture
from tallystick.errors import BadInput, shown
from tallystick.ledger import Ledger
from tallystick.sources.config import CONFIG, TEXT_PARTS, ledger_from_config, model_type_of


def ledger_of_language(source: Any, overrides: Mapping[str, Any]) -> Ledger:
    """The ledger of the language part of a config: the config of a model that also sees or hears.

    Args:
        source: a config in any form that `tallystick.count` takes: of a folder with weights the config beside them.
        overrides: keys to set over those of the part, by their names in it or with the name of the part in front.

    Raises:
        BadInput: where there is no config, or none of a language model in it.
    """
    values, name = _config_of(source)
    if not isinstance(values, Mapping):
        raise BadInput(f"{name} holds {shown(values)}, expected a config: an object with a model_type")
    family = architectures.find(model_type_of(values, name))
    stated = next((part for part in TEXT_PARTS if isinstance(values.get(part), Mapping)), None)
    part = stated or next((part for part in TEXT_PARTS if family is not None and part in family.parts), None)
    if part is None:
        raise BadInput(f"{name} has no part for its language alone: none of {', '.join(TEXT_PARTS)}")
    within = {key.removeprefix(f"{part}."): value for key, value in overrides.items()}
    whole = _whole_is_language(family, values, part, within, name)
    if whole is not None:
        return whole
    text = _inherited(values, family, part, values[part] if stated else {})
    if "model_type" not in {**text, **within}:
        raise BadInput(f"{name}: {part}.model_type is missing; say which it is with --set model_type=llama or another")
    ledger = ledger_from_config(text, within, source=name)
    ledger.notes = (f"the language part alone, {part}: a model of type {ledger.architecture}", *ledger.notes)
    return ledger


def _whole_is_language(
    family: Architecture | None, values: Mapping[str, Any], part: str, within: Mapping[str, Any], name: str
) -> Ledger | None:
    """The ledger of a type whose causal language model is its language part alone, as Llama 4's; None of any other."""
    if family is None or part not in family.parts or TIE in family.keys:
        return None
    ledger = ledger_from_config(values, {f"{part}.{key}": value for key, value in within.items()}, source=name)
    ledger.notes = (f"the language part alone, {part}", *ledger.notes)
    return ledger


def _inherited(
    values: Mapping[str, Any], family: Architecture | None, part: str, text: Mapping[str, Any]
) -> dict[str, Any]:
    """The part with what the whole says of it: its type and dtype where it states none, and whether it is tied."""
    known = family.parts[part].family if family is not None and part in family.parts else ""
    before = {"model_type": known, "dtype": values.get("dtype") or values.get("torch_dtype")}
    tied = values.get(TIE, family.keys.get(TIE) if family is not None else None)
    after = {} if tied is None else {TIE: tied}
    return {**{key: value for key, value in before.items() if value}, **text, **after}


def _config_of(source: Any) -> tuple[Any, str]:
    """A config and what its user calls it."""
    if isinstance(source, Mapping):
        return source, "the dictionary"
    if not isinstance(source, str | os.PathLike):
        if callable(getattr(source, "to_dict", None)) and not isinstance(source, type):
            return source.to_dict(), type(source).__name__
        raise BadInput(f"{shown(source)} is no config, of which the language part could be counted")
    from tallystick.presets import PRESETS

    if isinstance(source, str) and source.lower() in PRESETS:
        return PRESETS[source.lower()], source.lower()
    return _read(source), str(source)


def _read(source: str | os.PathLike[str]) -> Any:
    """The config in a file or folder, here or elsewhere."""
    from tallystick.sources.elsewhere import elsewhere
    from tallystick.sources.files import read_json, read_toml

    place = elsewhere(source) if isinstance(source, str) and "://" in source else Path(source)
    if place.name.endswith(".toml"):
        return read_toml(place)
    if place.name.endswith(".json"):
        return read_json(place)
    if isinstance(place, Path) and os.path.isfile(place):
        raise BadInput(f"{source} is no config, of which the language part could be counted: name its config.json")
    return read_json(place / CONFIG)
