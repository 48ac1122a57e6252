"""Find the class that a config was saved from, and the class to count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick import architectures
from tallystick.architectures.kit.variants import DECODER
from tallystick.core.registry import Architecture, ModelVariant
from tallystick.errors import quoted

# The endings of transformers' class names with an LM head.
_LM_CLASSES = ("ForCausalLM", "ForMaskedLM", "ForConditionalGeneration", "LMHeadModel", "LMHead", "DoubleHeadsModel")
_ENDINGS = ("WithLMHeadModel", "ModelWithLMHead", *_LM_CLASSES, "Decoder")  # endings of native classes, longest first
_ABSTRACT = "PreTrainedModel"  # the abstract base class of a type's models


def classes_of(values: Mapping[str, Any]) -> list[str]:
    """Return the class names that a config states under ``architectures``."""
    classes = values.get("architectures")
    return [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []


def variant_of(values: Mapping[str, Any], family: Architecture) -> ModelVariant | None:
    """Return the native class that a config was saved from, if not the language model.

    Args:
        values: the config.
        family: the architecture of its model type.
    """
    return variants_of(family).get(next(iter(classes_of(values)), ""))


def without_head(values: Mapping[str, Any], family: Architecture) -> bool:
    """Return whether a config's class is not native and, by its name, has no LM head.

    Args:
        values: the config.
        family: the architecture of its model type.
    """
    classes = classes_of(values)
    if not classes or family.class_name in classes or variant_of(values, family):
        return False
    return not any(name.endswith(_LM_CLASSES) for name in classes)


def counts(values: Mapping[str, Any], family: Architecture) -> bool:
    """Return whether the class that a config was saved from is native.

    Args:
        values: the config.
        family: the architecture of its model type.
    """
    return family.class_name in classes_of(values)[:1] or variant_of(values, family) is not None


def foreign_class(values: Mapping[str, Any], family: Architecture) -> str:
    """Return the name of a config's class if it is of the family's type but not native, else "".

    Args:
        values: the config.
        family: the architecture of its model type.
    """
    named = next(iter(classes_of(values)), "")
    other = counts(values, family) or not named.startswith(_stem(family) or " ")
    return "" if other or named.endswith(_ABSTRACT) else named


def is_part(values: Mapping[str, Any], family: Architecture) -> bool:
    """Return whether a config's class holds more than the language model, such as an encoder.

    Args:
        values: the config.
        family: the architecture of its model type.
    """
    if counts(values, family):
        return False
    named = classes_of(values)[:1]
    return values.get("is_encoder_decoder") is True or any(name.endswith("ForConditionalGeneration") for name in named)


def labels_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``num_labels`` as transformers reads it: the length of `id2label`, if present."""
    listed = values.get("id2label")
    return {"num_labels": len(listed)} if isinstance(listed, Mapping) else {}


def note_of(values: Mapping[str, Any], family: Architecture) -> list[str]:
    """Return a note if a config was saved from another class than the family's language model.

    Args:
        values: the config.
        family: the architecture of the type that is counted.
    """
    classes = classes_of(values)
    if not classes or not family.class_name:
        return []
    named = quoted(classes[0][:60])
    if values.get("model_type", family.name) != family.name:
        stated = quoted(str(values["model_type"])[:60])
        return [
            (f"{stated} is not known natively: counted as {family.name}, because the config names its class {named}")
        ]
    if family.class_name in classes:
        return []
    if variant := variant_of(values, family):
        return [f"counted as the config's class, {named}: {variant.head}"] if variant.head else []
    return [f"{contradiction(classes[0], family.name, family.class_name)}, the causal language model of its type"]


def contradiction(named: str, model_type: str, counted: str) -> str:
    """Return the sentence that a config names one class and another is counted.

    Args:
        named: the class that the config names.
        model_type: the config's model type.
        counted: the class that is counted.
    """
    other = type_of(named)
    both = f", a class of model type {other}, but says model_type {model_type}" if other else ""
    return f"the config names {quoted(named[:60])}{both}; counted as {counted}"


def named_type(values: Mapping[str, Any]) -> str:
    """Return the native model type of the classes that a config names, or ""."""
    return next(filter(None, map(type_of, classes_of(values))), "")


def alike(values: Mapping[str, Any]) -> str:
    """Return the native type whose class a config of an unknown type names, or "".

    Such a config counts as a renamed copy only if it states every size that the class reads; a
    default would be a guess.
    """
    family = architectures.find(named_type(values))
    if family is None or not set(family.parts) <= values.keys():
        return ""
    stated_keys = {family.aliases.get(key, key) for key in values}
    sizes = {key for key, default in family.keys.items() if type(default) is int}
    return family.name if sizes <= stated_keys else ""


def type_of(name: str) -> str:
    """Return the native model type of a class, or "".

    If several types share the class, the shortest name wins: others rename it, as gpt-sw3 renames
    gpt2.
    """
    families = filter(None, map(architectures.find, architectures.known()))
    named = (one.name for one in families if name and (name == one.class_name or name in variants_of(one)))
    return min(named, key=len, default="")


def base_of(family: Architecture) -> str:
    """Return the name of a family's native class without a head, such as BertModel, or ""."""
    name = f"{_stem(family)}Model"
    return name if name in variants_of(family) else ""


def _stem(family: Architecture) -> str:
    """Return the common beginning of the names of a family's classes."""
    return next((family.class_name.removesuffix(end) for end in _ENDINGS if family.class_name.endswith(end)), "")


def variants_of(family: Architecture) -> dict[str, ModelVariant]:
    """Return the family's other native classes by full class name."""
    stem = _stem(family)
    if family.name.endswith("_text") and not stem.endswith("Text"):
        stem += "Text"  # class_name names the multimodal model's class
    variants = DECODER if family.variants is None else family.variants
    return {f"{stem}{ending}": variant for ending, variant in variants.items()} if family.class_name else {}
