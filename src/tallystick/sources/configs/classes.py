"""The class that a config says it was saved from, and which class of its model type is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick import architectures
from tallystick.architectures.kit.variants import DECODER
from tallystick.core.registry import Architecture, ModelVariant
from tallystick.errors import quoted

# How transformers ends the names of its classes with an LM head.
_LM_CLASSES = ("ForCausalLM", "ForMaskedLM", "ForConditionalGeneration", "LMHeadModel", "LMHead", "DoubleHeadsModel")
_ENDINGS = ("WithLMHeadModel", "ModelWithLMHead", *_LM_CLASSES, "Decoder")  # of those that are native, longest first
_ABSTRACT = "PreTrainedModel"  # what the classes of a type have in common: none of them


def classes_of(values: Mapping[str, Any]) -> list[str]:
    """The classes that a config says it was saved from."""
    classes = values.get("architectures")
    return [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []


def variant_of(values: Mapping[str, Any], family: Architecture) -> ModelVariant | None:
    """The class that a config was saved from, where it is one of the family's other than its language model."""
    return variants_of(family).get(next(iter(classes_of(values)), ""))


def without_head(values: Mapping[str, Any], family: Architecture) -> bool:
    """Whether a config was saved from a class that is not native, and that has no LM head by its name."""
    classes = classes_of(values)
    if not classes or family.class_name in classes or variant_of(values, family):
        return False
    return not any(name.endswith(_LM_CLASSES) for name in classes)


def counts(values: Mapping[str, Any], family: Architecture) -> bool:
    """Whether the class that a config was saved from is native."""
    return family.class_name in classes_of(values)[:1] or variant_of(values, family) is not None


def foreign_class(values: Mapping[str, Any], family: Architecture) -> str:
    """The class of its own type that a config was saved from, by its name, where that is not native; else ""."""
    named = next(iter(classes_of(values)), "")
    other = counts(values, family) or not named.startswith(_stem(family) or " ")
    return "" if other or named.endswith(_ABSTRACT) else named


def is_part(values: Mapping[str, Any], family: Architecture) -> bool:
    """Whether the family's language model is a part alone of what a config was saved from: of an encoder and a decoder."""
    if counts(values, family):
        return False
    named = classes_of(values)[:1]
    return values.get("is_encoder_decoder") is True or any(name.endswith("ForConditionalGeneration") for name in named)


def labels_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """How many labels a config names, as transformers reads it: those of `id2label`, where it is there."""
    listed = values.get("id2label")
    return {"num_labels": len(listed)} if isinstance(listed, Mapping) else {}


def note_of(values: Mapping[str, Any], family: Architecture) -> list[str]:
    """What is to be said where a config was saved from another class than the family's language model."""
    classes = classes_of(values)
    if not classes or not family.class_name:
        return []
    named = quoted(classes[0][:60])
    if values.get("model_type", family.name) != family.name:
        stated = quoted(str(values["model_type"])[:60])
        return [f"{stated} is not known natively: counted as {family.name}, whose class {named} the config names"]
    if family.class_name in classes:
        return []
    if variant := variant_of(values, family):
        return [f"counted as the class that the config names, {named}: {variant.head}"] if variant.head else []
    return [f"{contradiction(classes[0], family.name, family.class_name)}, the causal language model of its type"]


def contradiction(named: str, model_type: str, counted: str) -> str:
    """What is to be said where a config of a type names a class, and another is counted."""
    other = type_of(named)
    both = f", a class of the model type {other}, and says model_type {model_type}" if other else ""
    return f"the config names {quoted(named[:60])}{both}; counted as {counted}"


def named_type(values: Mapping[str, Any]) -> str:
    """The native model type of the classes that a config names, or ""."""
    return next(filter(None, map(type_of, classes_of(values))), "")


def alike(values: Mapping[str, Any]) -> str:
    """The native type whose class a config of an unknown type names, or "".

    Such a config is a copy under a new name only if it states every size that the class reads: a default would be a guess.
    """
    family = architectures.find(named_type(values))
    if family is None or not set(family.parts) <= values.keys():
        return ""
    beside = {family.aliases.get(key, key) for key in values}
    sizes = {key for key, default in family.keys.items() if type(default) is int}
    return family.name if sizes <= beside else ""


def type_of(name: str) -> str:
    """The native model type of a class; the shortest name of several: others rename it, as gpt-sw3 does gpt2; or ""."""
    families = filter(None, map(architectures.find, architectures.known()))
    named = (one.name for one in families if name and (name == one.class_name or name in variants_of(one)))
    return min(named, key=len, default="")


def _stem(family: Architecture) -> str:
    """How the names of a family's classes begin."""
    return next((family.class_name.removesuffix(end) for end in _ENDINGS if family.class_name.endswith(end)), "")


def variants_of(family: Architecture) -> dict[str, ModelVariant]:
    """The other classes of a family by their whole names."""
    stem = _stem(family)
    if family.name.endswith("_text") and not stem.endswith("Text"):
        stem += "Text"  # its language model has the name of one that also sees
    variants = DECODER if family.variants is None else family.variants
    return {f"{stem}{ending}": variant for ending, variant in variants.items()} if family.class_name else {}
