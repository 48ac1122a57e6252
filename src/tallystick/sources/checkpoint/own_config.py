"""Read the config inside or next to a checkpoint: what it describes, or why it cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.core.config import TIE
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted, shown
from tallystick.files.remote import Location, NotThere
from tallystick.files.texts import read_json
from tallystick.sources.configs.config import layouts
from tallystick.sources.configs.native import refuse_odd_flag
from tallystick.sources.configs.resolve import PARAMS, TEXT_PARTS, model_type_of, other_kind, resolve
from tallystick.sources.roles.embedding_and_head import tied_pairs


class OwnConfig(NamedTuple):
    """The result of reading the config inside or next to a checkpoint."""

    ledgers: tuple[Ledger, ...] = ()  # one for each layout of names; empty if the type is unknown
    headless: bool = False  # saved from a class without an LM head
    notes: tuple[str, ...] = ()
    foreign: Mapping[str, Any] = {}  # the config's values, if its type is not native
    unread: str | None = None  # why it could not be used
    values: Mapping[str, Any] = {}  # all values of the config
    adapter: bool = False  # whether the checkpoint is a PEFT adapter


def read_own_config(config: Location, overrides: Mapping[str, Any]) -> OwnConfig:
    """Read the config next to a checkpoint.

    A failure becomes a note, unless overrides need the config.
    """
    try:
        values = read_json(config)
        if not isinstance(values, dict):
            raise BadInput(f"{config} holds {shown(values)}, expected an object with a model_type", code="not-a-config")
    except NotThere:
        if overrides:
            raise BadInput(f"there is no {config} to set {', '.join(overrides)} in", code="unknown-key") from None
        return OwnConfig()
    except BadInput as error:
        return _unread(error, overrides)
    return own_config_of(values, overrides, str(config))


def own_config_of(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> OwnConfig:
    """Return the ledgers that a config's values describe, or a note if its type is not native."""
    context = OwnConfig(values=values)
    try:
        if other_kind(values) == PARAMS:
            # This raises for Meta's keys, because these checkpoints use other tensor names.
            model_type_of({**values, **overrides}, source)
        asked = resolve(values, overrides, source)
        if asked.family is None or asked.is_part:
            said = asked.classes[0] if asked.family and asked.classes else asked.model_type
            unknown = f"{Path(source).name} has {quoted(said)}, which is not known natively"
            if overrides:
                raise BadInput(f"{unknown}: {', '.join(overrides)} cannot be set", code="unknown-key")
            refuse_odd_flag(values, source)
            return context._replace(notes=(f"{unknown}: roles are guessed from names",), foreign=values)
        return context._replace(ledgers=layouts(asked), headless=asked.headless)
    except BadInput as error:
        return _unread(error, overrides)._replace(values=values)


def _unread(error: BadInput, overrides: Mapping[str, Any]) -> OwnConfig:
    if overrides:
        raise error  # the user asked for that config to be read
    return OwnConfig(notes=(f"the checkpoint's config was not used: {error}",), unread=str(error))


def tied_by_flag(values: Mapping[str, Any], entries: list[Entry]) -> list[tuple[str, ...]] | None:
    """Return the pair of embedding and head if the config's flag ties them.

    Return [] if the flag is false, and None if the config has no flag.
    """
    parts = [values, *(values[part] for part in TEXT_PARTS if part in values)]
    flags = [part[TIE] for part in parts if isinstance(part, dict) and TIE in part]
    if not flags or not isinstance(flags[0], bool):
        return None
    pairs: list[tuple[str, ...]] = [*tied_pairs(entries)]
    return pairs[:1] if flags[0] else []
