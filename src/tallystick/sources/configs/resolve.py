"""What a config is, asked once: its model type, the family that reads it, the class of that which is counted, its keys."""

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
from tallystick.sources.configs.other_configs import translated

_LONGEST_TYPE = 200  # characters of a model_type
_MOST_COMPARED = 50  # keys of a dictionary that is no config
TEXT_PARTS = (
    "text_config",
    "llm_config",
    "language_config",
)  # where multimodal configs keep the language model's


# Dictionaries without a model_type, known by the keys that no other kind uses.
DIALECTS = (
    ("book_llama", {"emb_dim", "hidden_dim"}),
    ("book_gpt", {"emb_dim"}),
    ("nanogpt", {"block_size", "n_embd"}),
)


class Resolved:
    """A config and what it is."""

    def __init__(
        self,
        values: Mapping[str, Any],  # in Hugging Face's keys, or those of a dialect
        overrides: Mapping[str, Any],
        source: str,
        notes: tuple[str, ...],  # how it was put in these keys
        model_type: str,
        family: Architecture | None,  # None where it is not native
        variant: ModelVariant | None,  # the class that is counted, where it is not the language model
    ) -> None:
        self.values, self.overrides, self.source, self.notes = values, overrides, source, notes
        self.stated = {**values, **overrides}
        self.model_type, self.family, self.variant = model_type, family, variant

    @property
    def classes(self) -> list[str]:
        """The classes that it says it was saved from."""
        return classes_of(self.stated)

    @cached_property
    def parts(self) -> dict[str, NestedConfig]:
        """The keys of its class that hold configs."""
        own = self.family.parts if self.family else {}
        return {**own, **(self.variant.parts if self.variant else {})}

    @cached_property
    def flat(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its values, and what is set over them, with the keys of the parts under dotted names."""
        values = flatten_nested(with_nested_defaults(self.values, self.parts), self.parts, self.source)
        return values, flatten_nested(self.overrides, self.parts, self.source)

    @cached_property
    def native(self) -> Architecture | None:
        """The family, where it reads the parts too; None where one of them is of another type."""
        values, overrides = self.flat if self.family else ({}, {})
        for name, part in self.parts.items():
            stated = overrides.get(f"{name}.model_type", values.get(f"{name}.model_type"))
            if part.model_type and stated not in (None, "", part.model_type):
                return None
        return self.family

    @property
    def foreign(self) -> str:
        """The class of a native type that is not native itself, by its name; else ""."""
        return foreign_class(self.stated, self.family) if self.family else ""

    @property
    def counted(self) -> bool:
        """Whether the class that it was saved from is native."""
        return self.family is not None and counts(self.stated, self.family)

    @property
    def is_part(self) -> bool:
        """Whether the family's language model is a part alone of what it was saved from."""
        return self.family is not None and is_part(self.stated, self.family)

    @property
    def headless(self) -> bool:
        """Whether it was saved from a class without an LM head."""
        return self.family is not None and without_head(self.stated, self.family)

    @cached_property
    def language(self) -> Resolved:
        """The same config, counted as its family's causal language model."""
        values = {**self.values, "architectures": [self.family.class_name] if self.family else []}
        return Resolved(values, self.overrides, self.source, self.notes, self.model_type, self.family, None)


def resolve(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> Resolved:
    """What a config is.

    Args:
        values: the config as a dictionary, in any keys that are known.
        overrides: keys to set over it.
        source: what the user named, for messages.

    Raises:
        BadInput: where nothing says what it is.
    """
    notes: tuple[str, ...] = ()
    if other := translated(values, overrides, source):
        values, overrides, notes = other
    stated = {**values, **overrides}
    model_type, family = _typed(stated, source)
    variant = variant_of(stated, family) if family else None
    return Resolved(values, overrides, source, notes, model_type, family, variant)


def model_type_of(values: Mapping[str, Any], source: str) -> str:
    """The model type that a config states, or that its keys or class name give away."""
    return _typed(values, source)[0]


def _typed(values: Mapping[str, Any], source: str) -> tuple[str, Architecture | None]:
    """The model type, and its family where it is native."""
    stated = values.get("model_type")
    if stated is not None:
        if not isinstance(stated, str) or not 0 < len(stated) <= _LONGEST_TYPE:
            raise BadInput(f"{source}: model_type is {shown(stated)}, expected a word such as gpt2", code="bad-value")
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
            f"{source}: model_type is missing; say which it is with --set model_type=llama or another",
            code="not-a-config",
        )
    keys = [key for _, needed in DIALECTS for key in needed]
    misspelt = filter(None, (_misspelt(key, keys) for key in islice(values, _MOST_COMPARED)))
    raise BadInput(
        f"{source} is no model config: it has neither a model_type nor the keys of a known kind"
        f" (emb_dim, or block_size and n_embd){''.join(islice(misspelt, 3))}",
        code="not-a-config",
    )


def _misspelt(key: object, known: list[str]) -> str:
    return f"; {quoted(key)}{nearest(key, known, most=1)}" if isinstance(key, str) and nearest(key, known) else ""
