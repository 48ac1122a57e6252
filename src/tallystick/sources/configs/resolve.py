"""Resolve a config: its model type, family, counted class, parts and keys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from tallystick import architectures
from tallystick.core.config import NestedConfig, flatten_nested, with_nested_defaults
from tallystick.core.registry import Architecture, ModelVariant
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.sources.configs.classes import (
    alike,
    classes_of,
    counts,
    foreign_class,
    is_part,
    named_type,
    variant_of,
    without_head,
)

_LONGEST_TYPE = 200  # characters of a model_type
_MOST_COMPARED = 50  # keys of a dictionary that is not a config, compared for spelling mistakes
TEXT_PARTS = (
    "text_config",
    "llm_config",
    "language_config",
)  # keys under which multimodal configs keep the language model's config


# Dictionaries without a model_type, recognised by distinctive keys.
DIALECTS = (
    ("book_llama", {"emb_dim", "hidden_dim"}),
    ("book_gpt", {"emb_dim"}),
    ("nanogpt", {"block_size", "n_embd"}),
)

# Configs of other programs, recognised by distinctive keys, which `other_configs` translates.
LITGPT, PARAMS = "litgpt", "params"  # model_config.yaml; Meta's and Mistral's params.json
_OTHERS = ((LITGPT, {"mlp_class_name", "n_embd", "n_layer"}), (PARAMS, {"dim", "n_layers"}))
_PARAMS_TYPES = (None, "transformer", "mamba")  # model types of Mistral's params.json; DistilBERT has its keys too


class Resolved:
    """A config with its model type, family and counted class."""

    def __init__(
        self,
        values: Mapping[str, Any],  # in Hugging Face's keys or a dialect's
        overrides: Mapping[str, Any],
        source: str,
        notes: tuple[str, ...],  # how the keys were translated
        model_type: str,
        family: Architecture | None,  # None if the type is not native
        variant: ModelVariant | None,  # the counted class, if it is not the language model
    ) -> None:
        self.values, self.overrides, self.source, self.notes = values, overrides, source, notes
        self.stated = {**values, **overrides}
        self.model_type, self.family, self.variant = model_type, family, variant

    @property
    def classes(self) -> list[str]:
        """The class names that the config states."""
        return classes_of(self.stated)

    @cached_property
    def parts(self) -> dict[str, NestedConfig]:
        """The keys of the class that hold nested configs."""
        own = self.family.parts if self.family else {}
        return {**own, **(self.variant.parts if self.variant else {})}

    @cached_property
    def flat(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The values and the overrides, with the keys of nested configs under dotted names."""
        values = flatten_nested(with_nested_defaults(self.values, self.parts), self.parts, self.source)
        return values, flatten_nested(self.overrides, self.parts, self.source)

    @cached_property
    def native(self) -> Architecture | None:
        """The family, if it reads the nested configs too, else None."""
        values, overrides = self.flat if self.family else ({}, {})
        for name, part in self.parts.items():
            stated = overrides.get(f"{name}.model_type", values.get(f"{name}.model_type"))
            if part.model_type and stated not in (None, "", part.model_type):
                return None
        return self.family

    @property
    def foreign(self) -> str:
        """The name of a non-native class of a native type, else ""."""
        return foreign_class(self.stated, self.family) if self.family else ""

    @property
    def counted(self) -> bool:
        """Whether the class that the config was saved from is native."""
        return self.family is not None and counts(self.stated, self.family)

    @property
    def is_part(self) -> bool:
        """Whether the language model is only part of the class that the config was saved from."""
        return self.family is not None and is_part(self.stated, self.family)

    @property
    def headless(self) -> bool:
        """Whether the config was saved from a class without an LM head."""
        return self.family is not None and without_head(self.stated, self.family)

    @cached_property
    def language(self) -> Resolved:
        """The same config, resolved as its family's causal language model."""
        values = {**self.values, "architectures": [self.family.class_name] if self.family else []}
        return Resolved(values, self.overrides, self.source, self.notes, self.model_type, self.family, None)


def resolve(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> Resolved:
    """Resolve a config to its model type, family and class.

    Args:
        values: the config as a dictionary, in any known keys.
        overrides: keys to set over the config.
        source: the user's name for the config, for messages.

    Raises:
        BadInput: if the config states no model type and none follows from its keys or class.
    """
    notes: tuple[str, ...] = ()
    if kind := other_kind(values):
        from tallystick.sources.configs.other_configs import translated

        values, overrides, notes = translated(values, overrides, source, litgpt=kind == LITGPT)
    stated = {**values, **overrides}
    model_type, family = _typed(stated, source)
    variant = variant_of(stated, family) if family else None
    return Resolved(values, overrides, source, notes, model_type, family, variant)


def other_kind(values: Mapping[str, Any]) -> str:
    """Return the other program whose keys a config has, `LITGPT` or `PARAMS`, or ""."""
    kind = next((kind for kind, needed in _OTHERS if needed <= values.keys()), "")
    return "" if kind == PARAMS and values.get("model_type") not in _PARAMS_TYPES else kind


def model_type_of(values: Mapping[str, Any], source: str) -> str:
    """Return the model type that a config states, or that its keys or class name imply.

    Args:
        values: the config.
        source: the user's name for the config, for messages.

    Raises:
        BadInput: if no model type can be found.
    """
    return _typed(values, source)[0]


def _typed(values: Mapping[str, Any], source: str) -> tuple[str, Architecture | None]:
    """Return the model type, and its family if that is native."""
    stated = values.get("model_type")
    if stated is not None:
        if not isinstance(stated, str) or not 0 < len(stated) <= _LONGEST_TYPE:
            raise BadInput(f"{source}: model_type is {shown(stated)}, expected a name such as gpt2", code="bad-value")
        family = architectures.find(stated)
        kind = stated if family else alike(values) or stated
        return kind, family or architectures.find(kind)
    for name, needed in DIALECTS:
        if needed <= values.keys():
            return name, architectures.find(name)
    if named := named_type(values):
        return named, architectures.find(named)
    if classes_of(values) or any(isinstance(values.get(part), Mapping) for part in TEXT_PARTS):
        raise BadInput(
            f"{source}: model_type is missing; set it, such as --set model_type=llama",
            code="not-a-config",
        )
    keys = [key for _, needed in DIALECTS for key in needed]
    misspelt = filter(None, (_misspelt(key, keys) for key in islice(values, _MOST_COMPARED)))
    raise BadInput(
        f"{source} is not a model config: it has neither a model_type nor keys of a known kind (emb_dim,"
        f" or block_size and n_embd){''.join(islice(misspelt, 3))}",
        code="not-a-config",
    )


def _misspelt(key: object, known: list[str]) -> str:
    return f"; {quoted(key)}{nearest(key, known, most=1)}" if isinstance(key, str) and nearest(key, known) else ""
