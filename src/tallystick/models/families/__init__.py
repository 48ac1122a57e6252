"""The families that `Decoder` supports, one file each, named after the ``model_type``.

A file maps the family's config to a `DecoderConfig`, and its stored tensor names to ours. It is
found by its file name, so a new family needs no other edit. A file name that begins with ``_``
is shared by several families.
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
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig
from tallystick.sources.locate import Stated, config_in, locate

Reader = Callable[[Config], DecoderConfig]


class Family(NamedTuple):
    """How configs and checkpoints of one model type are read and written."""

    architecture: Architecture  # blueprint of the family
    keys: Mapping[str, Any]  # keys that the blueprint does not read, declared as for `Config`
    read: Reader
    rules: tuple[Rule, ...]


_REGISTRY: dict[str, Family] = {}


def family(name: str, rules: tuple[Rule, ...], **keys: Any) -> Callable[[Reader], Reader]:
    """Register a family: the decorated function turns a `Config` into a `DecoderConfig`.

    Args:
        name: the config's model_type, which names the blueprint too.
        rules: how the family stores tensors. If several match one of our tensors, the first is
            written and all are read.
        **keys: keys read beyond the blueprint's, with the default of each.
    """
    blueprint = architectures.find(name)
    if blueprint is None:
        raise LookupError(f"{name} has no blueprint in architectures/")

    def register(read: Reader) -> Reader:
        _REGISTRY[name] = Family(blueprint, keys, read, rules)
        return read

    return register


def known() -> list[str]:
    """Return every supported model type, in alphabetical order."""
    files = {path.stem for folder in __path__ for path in Path(folder).glob("*.py")}
    return sorted(name for name in files if not name.startswith("_"))


def find(model_type: str) -> Family:
    """Return the family of a model type; raise `BadInput` if it is not supported."""
    if model_type not in known():
        raise BadInput(
            f"model type {quoted(model_type)} is not among tallystick's"
            f" decoders{nearest(model_type, known())}: known are {', '.join(known())}",
            code="unknown-model-type",
        )
    import_module(f"{__name__}.{model_type}")
    return _REGISTRY[model_type]


def config_of(source: Any, **settings: Any) -> DecoderConfig:
    """Return the `DecoderConfig` of a source.

    Args:
        source: a preset's name, a Hugging Face config as a dictionary or an object, or the
            name of one: a path, an address, ``module:NAME``.
        **settings: config keys that override the source's values.

    Raises:
        BadInput: if the model type is not supported, a key is unknown, or values contradict
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
    blueprint.build(config)  # refuse what the blueprint refuses
    read = found.read(config)
    object.__setattr__(read, "origin", {**values, "model_type": blueprint.name})
    return read


# The config keys of each choice that may change after a decoder is built, in any family.
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
    """Return a config with other choices, also in its `origin` if the family has keys for them.

    Args:
        config: config of a decoder.
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
        raise BadInput(f"{what} is not a config: name a preset, a config.json or a folder with one", code="not-found")
    if not isinstance(stated.values, Mapping):
        raise BadInput(
            f"{stated.where} holds {shown(stated.values)}, expected a config: an object with a model_type",
            code="not-found",
        )
    return stated
