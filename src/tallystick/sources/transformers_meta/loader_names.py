"""Map stored tensors to transformers' names and ties for types that are not native."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tallystick.core.config import TIE
from tallystick.core.description import ModelDescription
from tallystick.core.entries import Entry
from tallystick.core.evidence import Values
from tallystick.core.ledger import Ledger
from tallystick.sources.checkpoint.match import Match
from tallystick.sources.checkpoint.match_config import ConfigMatch
from tallystick.sources.configs.classes import classes_of
from tallystick.sources.configs.resolve import TEXT_PARTS, model_type_of
from tallystick.sources.torch_module.module import ledger_of_facts
from tallystick.sources.transformers_meta.fallback import built_by_transformers


def match_transformers(
    stored: Iterable[Entry], config: Mapping[str, Any], values: Values, *, source: str, language: bool = False
) -> ConfigMatch:
    """Match stored entries with the model that transformers builds from the config.

    Args:
        stored: the entries of the checkpoint.
        config: the config next to it.
        values: compares stored tensors, if a tie depends on their values.
        source: the user's name for the checkpoint, for messages.
        language: whether to match only the model's language part.

    Raises:
        BadInput: if transformers is not installed, does not know the type, or cannot build it.
    """
    model_type = model_type_of(config, source)
    singles = [single for entry in stored for single in entry.unrolled()]
    model = built_by_transformers(
        model_type,
        config,
        {},
        source=source,
        classes=classes_of(config),
        stored={single.name: single.called for single in singles},
        language=language,
    )
    loaded_as = model.loaded
    built_entries: Iterable[Entry] = ledger_of_facts(model.facts).rolled
    if model.language is not None:
        part = model.language
        singles = [single for single in singles if loaded_as[single.name] in part]
        built_entries = tuple(entry for entry in built_entries if entry.name in part)
    stored_as: dict[str, str] = {}
    for single in singles:
        stored_as.setdefault(loaded_as[single.name], single.name)
    # The model's entries under the stored names.
    built = {
        entry.name: entry._replace(
            name=stored_as.get(entry.name, entry.name), storage=stored_as.get(entry.storage, entry.storage)
        )
        for entry in built_entries
    }
    found = Match(
        pairs=[(single, built.get(loaded_as[single.name])) for single in singles],
        missing=[entry.name for name, entry in built.items() if name not in stored_as and not entry.buffer],
        misshaped=[],  # a loader splits and joins renamed tensors, so shapes cannot be compared
        prefix=("", ""),
        elsewhere={},
    )
    described = Ledger(tuple(built.values()), source=source, kind="config", model=ModelDescription(model_type))
    if _denies_tie(config):
        described = _untied_where_it_differs(described, set(stored_as.values()), values)
    return ConfigMatch(found, described)


def _denies_tie(config: Mapping[str, Any]) -> bool:
    """Return whether a config leaves the head untied, by its flag or its text config's.

    transformers ties some types anyway: T5 always, some multimodal types by default.
    """
    parts = [config[part] for part in TEXT_PARTS if isinstance(config.get(part), dict)]
    flags = [config.get(TIE), *(bool(part.get(TIE)) for part in parts)]
    return next((flag for flag in flags if flag is not None), None) is False


def _untied_where_it_differs(described: Ledger, stored: Container[str], values: Values) -> Ledger:
    """Untie stored heads whose values differ from the embedding's, as a loader does."""
    apart = set()
    for tie in described.ties:
        first, *others = [name for name in tie.names if name in stored] or tie.names
        heads = [name for name in others if described.tensors[name].role == "head"]
        apart |= {name for name in heads if values.compare(first, name).relation == "untied"}
    entries = (e._replace(storage=e.name, unique=e.size) if e.name in apart else e for e in described.entries)
    return replace(described, rolled=tuple(entries))
