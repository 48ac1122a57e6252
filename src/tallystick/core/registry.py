"""The registry of families: how a config of each ``model_type`` becomes a `Model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tallystick.core.config import REQUIRED, TIE, Config, NestedConfig, int_or, nonnegative, optional, per_layer
from tallystick.core.nodes import Model

__all__ = [
    "REGISTRY",
    "REQUIRED",
    "Alias",
    "Architecture",
    "Config",
    "ModelVariant",
    "NestedConfig",
    "alias",
    "architecture",
    "int_or",
    "nonnegative",
    "optional",
    "part_of",
    "per_layer",
    "register_alias",
]


class ModelVariant(NamedTuple):
    """Another class of a model type than its language model, built from the language model.

    It has the same body with another head, no head, or further modules.
    """

    make: Callable[[Config, Model], Model]
    head: str = ""  # what replaces the LM head, in words; "" if it keeps the LM head
    keys: Mapping[str, Any] = {}  # keys that it reads in addition to the language model's, and `aliases` of these
    aliases: Mapping[str, str] = {}
    parts: Mapping[str, NestedConfig] = {}  # as in `Architecture`


class Architecture(NamedTuple):
    """One family: how a config of its `model_type` becomes a blueprint."""

    name: str  # the config's model_type
    class_name: str  # the class that transformers or the book builds; "" if there is none
    keys: Mapping[str, Any]  # config keys that it reads, as `Config` declares them
    aliases: Mapping[str, str]  # other names of those keys
    build: Callable[[Config], Model]
    running: Mapping[str, Any] = {}  # keys that change how the model runs, but no tensor
    variants: Mapping[str, ModelVariant] | None = None  # by class-name ending; None: the usual ones of a decoder
    # Keys that hold nested configs. Their keys are in `keys` and `running` under dotted names.
    parts: Mapping[str, NestedConfig] = {}


REGISTRY: dict[str, Architecture] = {}


def architecture(
    name: str,
    class_name: str = "",
    *,
    aliases: Mapping[str, str] | None = None,
    running: Mapping[str, Any] | None = None,
    variants: Mapping[str, ModelVariant] | None = None,
    parts: Mapping[str, NestedConfig] | None = None,
    **keys: Any,
) -> Callable[[Callable[[Config], Model]], Callable[[Config], Model]]:
    """Register a family: the decorated function reads a `Config` and returns the `Model`.

    The module must be ``architectures/NAME.py``; it is found by its name, without another edit.

    Args:
        name: the config's model_type.
        class_name: the class that transformers or the book builds; "" if there is none.
        aliases: other names of keys.
        running: keys that change how the model runs, but no tensor.
        variants: other classes by the ending of their name, as in `Architecture`.
        parts: keys that hold nested configs, which the function reads by `Config.part`.
        **keys: config keys that change a tensor, with the type's defaults (see `Config`).
    """

    def register(build: Callable[[Config], Model]) -> Callable[[Config], Model]:
        inside = parts or {}
        REGISTRY[name] = Architecture(
            name,
            class_name,
            {**keys, **{part: None for part in inside if inside[part].optional}, **_dotted(inside, "keys")},
            {**(aliases or {}), **_dotted(inside, "aliases")},
            build,
            {**(running or {}), **_dotted(inside, "running")},
            None if variants is None else {ending: _flat(variant) for ending, variant in variants.items()},
            inside,
        )
        return build

    return register


class Alias(NamedTuple):
    """A model type that is another name of a family."""

    class_name: str
    like: str  # the family's model_type
    keys: Mapping[str, Any]  # keys with other defaults


def alias(class_name: str, *, like: str, **keys: Any) -> Alias:
    """Return a type whose models are those of a family under another class name.

    Args:
        class_name: the class that transformers builds.
        like: the family's model_type.
        **keys: keys of the family with other defaults.
    """
    return Alias(class_name, like, keys)


def register_alias(name: str, alias: Alias, family: Architecture) -> Architecture:
    """Register a type that is another name of a family, and return it.

    Args:
        name: the type's model_type.
        alias: its class and other defaults.
        family: the registered family.

    Raises:
        TypeError: if the alias sets a default for a key that its family does not read.
    """
    declared = set(family.keys).union(*(variant.keys for variant in (family.variants or {}).values()))
    if unknown := set(alias.keys) - declared:
        raise TypeError(f"{name} states {', '.join(sorted(unknown))}, which {alias.like} does not read")

    def other(keys: Mapping[str, Any]) -> dict[str, Any]:
        return {key: alias.keys.get(key, default) for key, default in keys.items()}

    variants = family.variants and {
        ending: variant._replace(keys=other(variant.keys)) for ending, variant in family.variants.items()
    }
    REGISTRY[name] = family._replace(name=name, class_name=alias.class_name, keys=other(family.keys), variants=variants)
    return REGISTRY[name]


def part_of(
    model_type: str,
    *,
    tied_above: bool = False,
    own_type: bool = False,
    unstated: Mapping[str, Any] | None = None,
    **defaults: Any,
) -> NestedConfig:
    """Return the config of another family for use as a nested config.

    Args:
        model_type: the family.
        tied_above: whether the outer config states the tie of embedding and LM head. Then the
            nested key for it changes nothing.
        own_type: as `model_type` in `NestedConfig`.
        unstated: as in `NestedConfig`.
        **defaults: defaults that differ from the family's.
    """
    family = REGISTRY[model_type]
    keys, running = (
        {key: defaults.get(key, default) for key, default in declared.items()}
        for declared in (family.keys, family.running)
    )
    if tied_above:
        running[TIE] = keys.pop(TIE)
    return NestedConfig(
        keys, running, family.aliases, model_type if own_type else "", unstated=unstated or {}, family=model_type
    )


def _flat(variant: ModelVariant) -> ModelVariant:
    """Return a variant that also lists the keys of its nested configs."""
    keys, running, aliases = (_dotted(variant.parts, field) for field in ("keys", "running", "aliases"))
    return variant._replace(keys={**variant.keys, **keys, **running}, aliases={**variant.aliases, **aliases})


def _dotted(parts: Mapping[str, NestedConfig], field: str) -> dict[str, Any]:
    """Return the keys or aliases of all nested configs under dotted names."""
    return {
        f"{name}.{key}": f"{name}.{value}" if field == "aliases" else value
        for name, part in parts.items()
        for key, value in getattr(part, field).items()
    }
