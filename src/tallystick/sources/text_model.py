"""The language model inside of one that also sees or hears, counted as a model of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tallystick import architectures
from tallystick.core.config import TIE
from tallystick.core.ledger import Ledger
from tallystick.core.registry import Architecture
from tallystick.errors import BadInput, shown
from tallystick.formats.folder import names_in
from tallystick.sources.checkpoint.checkpoint import ledger_of_part
from tallystick.sources.checkpoint.missing_weights import weights_in
from tallystick.sources.configs.classes import variant_of
from tallystick.sources.configs.config import ledger_from_config, refuse_too_many
from tallystick.sources.configs.resolve import TEXT_PARTS, model_type_of
from tallystick.sources.locate import Located, config_in
from tallystick.sources.quantized.from_config import pack_as_stated
from tallystick.sources.transformers_meta.fallback import is_known, language_by_transformers


def ledger_of_language(found: Located, overrides: Mapping[str, Any]) -> Ledger:
    """The ledger of the language part of a model that also sees or hears: of its weights where there are any, or its config.

    Args:
        found: a config in any form that `tallystick.count` takes, or a folder with one and with weights.
        overrides: keys to set over those of the part, by their names in it or with the name of the part in front.

    Raises:
        BadInput: where there is no config, or none of a language model in it, or nothing of that in the weights.
    """
    name, folder = found.name, found.place if found.kind == "folder" else None
    stated = config_in(found)
    if stated is None:
        what = shown(found.given) if found.kind in ("module", "other") else name
        where = ": name its config.json" if found.place else ""
        raise BadInput(f"{what} is no config, of which the language part could be counted{where}", code="not-a-config")
    values = stated.values
    if not isinstance(values, Mapping):
        raise BadInput(
            f"{name} holds {shown(values)}, expected a config: an object with a model_type", code="not-a-config"
        )
    family, part = _part_of(values, name)
    within = {key.removeprefix(f"{part}."): value for key, value in overrides.items()}
    described = _described(values, family, part, within, name)
    if folder is None:
        return pack_as_stated(described, values)
    weights = weights_in(folder, names_in(folder))
    if weights.absent:
        packed = pack_as_stated(described, values)
        return _noted(packed, "counted from the config: not all files of weights are there")
    if weights.path is None:
        return pack_as_stated(described, values)
    layouts = (
        [described, _described(values, family, part, within, name, published=True)] if described.model.recipe else []
    )
    refuse_too_many(layouts, name)
    settings = {**values, **{f"{part}.{key}": value for key, value in within.items()}}
    ledger = ledger_of_part(weights.path, layouts, settings, source=name, shards=weights.shards)
    return _noted(ledger, *described.notes[:1])


def _noted(ledger: Ledger, *first: str) -> Ledger:
    """A ledger with notes before its own."""
    return replace(ledger, notes=(*first, *ledger.notes))


def _part_of(values: Mapping[str, Any], name: str) -> tuple[Architecture | None, str]:
    """The native type of the whole, None where it is none, and the key of its language part."""
    stated = next((part for part in TEXT_PARTS if values.get(part) is not None), None)
    if stated and not isinstance(values[stated], Mapping):
        raise BadInput(f"{name}: {stated} is {shown(values[stated])}, expected an object", code="bad-value")
    family = _family(values, name, nested=stated is not None)
    part = stated or next((part for part in TEXT_PARTS if family is not None and part in family.parts), None)
    if part is None:
        raise BadInput(f"{name} has no part for its language alone: none of {', '.join(TEXT_PARTS)}", code="no-answer")
    return family, part


def _described(
    values: Mapping[str, Any],
    family: Architecture | None,
    part: str,
    within: Mapping[str, Any],
    name: str,
    *,
    published: bool = False,
) -> Ledger:
    """The ledger of the language part that a config describes, said in its first note."""
    dotted = {f"{part}.{key}": value for key, value in within.items()}
    if family is not None and part in family.parts and TIE not in family.keys:
        # A type whose causal language model is its language part alone, as Llama 4's; tied as the whole is.
        whole = variant_of(values, family)
        tied = {f"{part}.{TIE}": values.get(TIE, whole.keys[TIE])} if whole and TIE in whole.keys else {}
        alone = {**values, "architectures": [family.class_name]}
        ledger = ledger_from_config(alone, {**tied, **dotted}, source=name, published=published)
        return _noted(ledger, f"the language part alone, {part}")
    text = _inherited(values, family, part, values.get(part) or {})
    if "model_type" not in {**text, **within}:
        raise BadInput(
            f"{name}: {part}.model_type is missing; say which it is with --set model_type=llama or another",
            code="not-a-config",
        )
    kind = model_type_of({**text, **within}, name)
    if family is None and architectures.find(kind) is None and is_known(values.get("model_type")):
        return language_by_transformers(values["model_type"], values, dotted, source=name)
    ledger = ledger_from_config(text, within, source=name, published=published)
    return _noted(ledger, f"the language part alone, {part}: a model of type {ledger.architecture}")


def _family(values: Mapping[str, Any], name: str, *, nested: bool) -> Architecture | None:
    """The native type of the whole; None of any other, and of one that goes unsaid where its text says what that is."""
    try:
        return architectures.find(model_type_of(values, name))
    except BadInput:
        if nested and values.get("model_type") is None:
            return None
        raise


def _inherited(
    values: Mapping[str, Any], family: Architecture | None, part: str, text: Mapping[str, Any]
) -> dict[str, Any]:
    """The part with what the whole says of it: its type and dtype where it states none, and whether it is tied."""
    known = family.parts[part].family if family is not None and part in family.parts else ""
    before = {"model_type": known, "dtype": values.get("dtype") or values.get("torch_dtype")}
    tied = values.get(TIE, family.keys.get(TIE) if family is not None else None)
    after = {} if tied is None else {TIE: tied}
    return {**{key: value for key, value in before.items() if value}, **text, **after}
