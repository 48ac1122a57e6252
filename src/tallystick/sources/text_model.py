"""Count only the language model inside a multimodal model."""

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
from tallystick.formats.folder_weights import weights_in
from tallystick.sources.checkpoint.checkpoint import ledger_of_part
from tallystick.sources.configs.classes import variant_of
from tallystick.sources.configs.config import ledger_from_config
from tallystick.sources.configs.native import refuse_too_many
from tallystick.sources.configs.resolve import TEXT_PARTS, model_type_of
from tallystick.sources.locate import Located, config_in
from tallystick.sources.quantized.from_config import pack_as_stated
from tallystick.sources.transformers_meta.fallback import is_known, language_by_transformers


def ledger_of_language(found: Located, overrides: Mapping[str, Any]) -> Ledger:
    """Return the ledger of a multimodal model's language model, from its weights or its config.

    Args:
        found: a config in any form that `tallystick.count` takes, or a folder with a config and
            weights.
        overrides: keys to set over the text config, with or without the part's name in front.

    Raises:
        BadInput: if there is no config, the config has no language model, or the weights do not
            hold it.
    """
    name, folder = found.name, found.place if found.kind == "folder" else None
    stated = config_in(found)
    if stated is None:
        what = shown(found.given) if found.kind in ("module", "other") else name
        where = ": name its config.json" if found.place else ""
        raise BadInput(f"{what} is not a config, so its language part cannot be counted{where}", code="not-a-config")
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
        return _noted(packed, "counted from the config: some weight files are missing")
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
    """Return a copy of the ledger with `first` before its own notes."""
    return replace(ledger, notes=(*first, *ledger.notes))


def _part_of(values: Mapping[str, Any], name: str) -> tuple[Architecture | None, str]:
    """Return the native family of the outer config (or None) and the key of its language part."""
    stated = next((part for part in TEXT_PARTS if values.get(part) is not None), None)
    if stated and not isinstance(values[stated], Mapping):
        raise BadInput(f"{name}: {stated} is {shown(values[stated])}, expected an object", code="bad-value")
    family = _family(values, name, nested=stated is not None)
    part = stated or next((part for part in TEXT_PARTS if family is not None and part in family.parts), None)
    if part is None:
        raise BadInput(f"{name} has no separate language part: none of {', '.join(TEXT_PARTS)}", code="no-answer")
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
    """Return the ledger of the language part that a config describes.

    Its first note names the part.
    """
    dotted = {f"{part}.{key}": value for key, value in within.items()}
    if family is not None and part in family.parts and TIE not in family.keys:
        # The causal language model of this type is the language part alone (Llama 4). Its tie is
        # the outer config's.
        whole = variant_of(values, family)
        tied = {f"{part}.{TIE}": values.get(TIE, whole.keys[TIE])} if whole and TIE in whole.keys else {}
        alone = {**values, "architectures": [family.class_name]}
        ledger = ledger_from_config(alone, {**tied, **dotted}, source=name, published=published)
        return _noted(ledger, f"language part only, {part}")
    text = _inherited(values, family, part, values.get(part) or {})
    if "model_type" not in {**text, **within}:
        raise BadInput(
            f"{name}: {part}.model_type is missing; set it, such as --set model_type=llama",
            code="not-a-config",
        )
    kind = model_type_of({**text, **within}, name)
    if family is None and architectures.find(kind) is None and is_known(values.get("model_type")):
        return language_by_transformers(values["model_type"], values, dotted, source=name)
    ledger = ledger_from_config(text, within, source=name, published=published)
    return _noted(ledger, f"language part only, {part}: a model of type {ledger.architecture}")


def _family(values: Mapping[str, Any], name: str, *, nested: bool) -> Architecture | None:
    """Return the native family of the outer config.

    Return None if it is unknown, or only the nested text config states a model_type.
    """
    try:
        return architectures.find(model_type_of(values, name))
    except BadInput:
        if nested and values.get("model_type") is None:
            return None
        raise


def _inherited(
    values: Mapping[str, Any], family: Architecture | None, part: str, text: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the text config with the outer config's model type, dtype and tie.

    The outer type and dtype apply only if the text config states none; the outer tie always wins.
    """
    known = family.parts[part].family if family is not None and part in family.parts else ""
    before = {"model_type": known, "dtype": values.get("dtype") or values.get("torch_dtype")}
    tied = values.get(TIE, family.keys.get(TIE) if family is not None else None)
    after = {} if tied is None else {TIE: tied}
    return {**{key: value for key, value in before.items() if value}, **text, **after}
