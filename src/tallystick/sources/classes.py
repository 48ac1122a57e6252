"""The class that a config says it was saved from, and which class of its model type is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick import architectures
from tallystick.blueprint import Architecture, Config, Group, Linear, Model, Projection
from tallystick.errors import quoted

LABELS = "num_labels"

# How transformers ends the names of its classes with an LM head.
_LM_CLASSES = ("ForCausalLM", "ForMaskedLM", "ForConditionalGeneration", "LMHeadModel", "LMHead", "DoubleHeadsModel")
_CLASSIFIER = "ForSequenceClassification"


def classes_of(values: Mapping[str, Any]) -> list[str]:
    """The classes that a config says it was saved from."""
    classes = values.get("architectures")
    return [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []


def without_head(values: Mapping[str, Any], family: Architecture) -> bool:
    """Whether a config was saved from a class without an LM head: a bare model, a classifier."""
    classes = classes_of(values)
    return (
        bool(classes) and family.class_name not in classes and not any(name.endswith(_LM_CLASSES) for name in classes)
    )


def is_part(values: Mapping[str, Any], family: Architecture) -> bool:
    """Whether the family's language model is a part alone of what a config was saved from: of an encoder and a decoder."""
    named = classes_of(values)[:1]
    if family.class_name in named:
        return False
    return values.get("is_encoder_decoder") is True or any(name.endswith("ForConditionalGeneration") for name in named)


def is_classifier(values: Mapping[str, Any], family: Architecture) -> bool:
    """Whether a config was saved from the family's sequence classifier, or reward model: `score` in place of the LM head."""
    stem = next((family.class_name.removesuffix(end) for end in _LM_CLASSES if family.class_name.endswith(end)), "")
    # Where the type counts the text of a model that also sees, its classifier says so.
    names = {f"{stem}{_CLASSIFIER}", f"{stem}Text{_CLASSIFIER}"}
    return family.scored and bool(stem) and not names.isdisjoint(classes_of(values)[:1])


def labels_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """How many labels a config names, as transformers reads it: those of `id2label`, where it is there."""
    listed = values.get("id2label")
    return {LABELS: len(listed)} if isinstance(listed, Mapping) else {}


def as_classifier(model: Model, c: Config) -> Model:
    """A language model with `score` in place of its head: weight (num_labels, width), no bias."""
    head = model.children.pop("lm_head")
    assert isinstance(head, Projection)  # noqa: S101  # else the family says that it is not `scored`
    model.ties = {tied: to for tied, to in model.ties.items() if not tied.startswith("lm_head.")}
    model.children["score"] = Group(**Linear(head.runs.reads, getattr(c, LABELS), bias=False).children)
    return model


def note_of(values: Mapping[str, Any], family: Architecture) -> list[str]:
    """What is to be said where a config was saved from another class than the family's language model."""
    classes = classes_of(values)
    if not classes or not family.class_name or family.class_name in classes:
        return []
    named = quoted(classes[0][:60])
    if is_classifier(values, family):
        return [f"counted as the class that the config names, {named}: `score` in place of the LM head"]
    other = type_of(classes[0])
    contradiction = f", a class of the model type {other}, and says model_type {family.name}" if other else ""
    return [
        f"the config names {named}{contradiction}; counted as {family.class_name}, the causal language model of its type"
    ]


def type_of(name: str) -> str:
    """The native model type of a class; the shortest name of several: others rename it, as gpt-sw3 does gpt2; or ""."""
    return min((known for known in architectures.known() if name and _class_name(known) == name), key=len, default="")


def _class_name(model_type: str) -> str:
    family = architectures.find(model_type)
    return family.class_name if family else ""
