"""The families that a `Decoder` can be, one file each, named after the config's ``model_type``.

A file says how the family's config becomes a `DecoderConfig`, and under which names it stores its tensors. It is found
by its name: adding one needs no other edit. A name that begins with ``_`` holds what several families share.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tallystick import architectures
from tallystick.core.budget import one_source
from tallystick.core.config import Config, merged
from tallystick.core.registry import Architecture
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.models.config import DecoderConfig
from tallystick.models.names import Rule
from tallystick.sources.locate import Stated, config_in, locate

Reader = Callable[[Config], DecoderConfig]


class Family(NamedTuple):
    """How one model type's configs and files are to be read and written."""

    architecture: Architecture  # its blueprint
    keys: Mapping[str, Any]  # those that its blueprint does not read, as `Config` declares them
    read: Reader
    rules: tuple[Rule, ...]


_REGISTRY: dict[str, Family] = {}


def family(name: str, rules: tuple[Rule, ...], **keys: Any) -> Callable[[Reader], Reader]:
    """Register a family: the decorated function reads a `Config` and returns the `DecoderConfig`.

    Args:
        name: the config's model_type, and that of the blueprint.
        rules: how it stores its tensors. Of several for one of ours the first is written, and all are read.
        **keys: those that it reads beyond its blueprint's, with the defaults of its type.
    """
    blueprint = architectures.find(name)
    if blueprint is None:
        raise LookupError(f"{name} has no blueprint in architectures/")

    def register(read: Reader) -> Reader:
        _REGISTRY[name] = Family(blueprint, keys, read, rules)
        return read

    return register


def known() -> list[str]:
    """Every model type that a decoder can be, in alphabetical order."""
    files = {path.stem for folder in __path__ for path in Path(folder).glob("*.py")}
    return sorted(name for name in files if not name.startswith("_"))


def find(model_type: str) -> Family:
    """The family of a model type; `BadInput` where there is none."""
    if model_type not in known():
        raise BadInput(
            f"model type {quoted(model_type)} is no decoder of tallystick's{nearest(model_type, known())}:"
            f" there are {', '.join(known())}",
            code="unknown-model-type",
        )
    import_module(f"{__name__}.{model_type}")
    return _REGISTRY[model_type]


def config_of(source: Any, **settings: Any) -> DecoderConfig:
    """The config of a decoder.

    Args:
        source: a preset's name, a Hugging Face config as a dictionary or an object, or whatever names one: a path, an
            address, ``module:NAME``.
        **settings: keys to set over it.

    Raises:
        BadInput: for a model type that is no decoder of ours, a key that nothing reads, and values that contradict
            each other.
    """
    from tallystick.sources.configs.resolve import resolve

    values, where = _values(source)
    asked = resolve(values, settings, where)
    found = find(asked.model_type)
    blueprint = found.architecture
    keys = {**blueprint.keys, **blueprint.running, **found.keys}
    values = merged(asked.values, asked.overrides, known=keys, aliases=blueprint.aliases, where=where)
    config = Config(values, keys, where=where, aliases=blueprint.aliases)
    blueprint.build(config)  # what the blueprint refuses, we do
    read = found.read(config)
    object.__setattr__(read, "origin", {**values, "model_type": blueprint.name})
    return read


# The keys of configs that say what may be changed of a decoder once it is built, whatever its family.
_CHANGEABLE = {
    "vocab_size": ("vocab_size",),
    "context": ("n_positions", "max_position_embeddings", "block_size"),
    "tied": ("tie_word_embeddings",),
    "dropout": ("resid_pdrop", "dropout"),
    "embedding_dropout": ("embd_pdrop", "dropout"),
    "attention_dropout": ("attn_pdrop", "attention_dropout", "dropout"),
}
DROPOUTS = ("dropout", "embedding_dropout", "attention_dropout")


def changed(config: DecoderConfig, **choices: Any) -> DecoderConfig:
    """A config with other choices, in the Hugging Face config that it keeps too, as far as its family has words for them.

    Args:
        config: of a decoder.
        **choices: `vocab_size`, `context`, `tied`, or a rate of `DROPOUTS`.
    """
    if "model_type" in config.origin:
        found = find(config.origin["model_type"])
        keys = {**found.architecture.keys, **found.architecture.running, **found.keys}
        settings = {key: value for one, value in choices.items() for key in _CHANGEABLE[one] if key in keys}
        config = replace(config_of(config.origin, **settings), **{one: getattr(config, one) for one in DROPOUTS})
    return replace(config, **choices)


def _values(source: Any) -> Stated:
    with one_source():
        stated = config_in(locate(source))
    if stated is None:
        what = source if isinstance(source, str | os.PathLike) else shown(source)
        raise BadInput(f"{what} is no config: name a preset, a config.json or the folder with one", code="not-found")
    if not isinstance(stated.values, Mapping):
        raise BadInput(
            f"{stated.where} holds {shown(stated.values)}, expected a config: an object with a model_type",
            code="not-found",
        )
    return stated
