"""Turn a config, a checkpoint, a live module or a factory into a `Ledger`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.core.budget import one_source
from tallystick.core.config import CONFIG, OTHER_CONFIGS, TOKENIZER
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted, shown
from tallystick.sources.locate import Located, config_in, locate, placed, values_in

if TYPE_CHECKING:
    from tallystick.files.remote import Location, Remote


def read(
    source: Any, overrides: Mapping[str, Any], part: str | None = None, *, real: bool = False, keep: bool = False
) -> Ledger:
    """Return the ledger of any source that `tallystick.count` accepts.

    Args:
        source: a preset name, path, address, dictionary, config object, `nn.Module` or factory.
        overrides: config keys to set over the source's config.
        part: ``"text"`` for the language model of a multimodal model; None for the whole model.
        real: build a factory's model in real memory.
        keep: keep a live module's tensors in the ledger, so that their values can be compared at
            once.

    Raises:
        BadInput: if the source cannot be read, or `part` is not ``"text"`` or None.
    """
    if part not in (None, "text"):
        raise BadInput(f"part is {shown(part)}, expected text", code="bad-value")
    with one_source():
        found = locate(source)
        if part is None:
            ledger = _ledger(found, overrides, real=real, keep=keep)
        else:
            from tallystick.sources.text_model import ledger_of_language

            ledger = ledger_of_language(found, overrides)
        if found.place is not None and not isinstance(found.place, Path):
            ledger = ledger.with_fetched(found.place.store.tally.fetched)
        return ledger


def read_remote(place: Remote, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """Return the ledger of a remote file, or of the folder at the root of its store.

    Args:
        place: the file, or the folder.
        overrides: config keys to set over its config.
        source: its name in messages.

    Raises:
        BadInput: if it cannot be counted.
    """
    with one_source():
        return _ledger(placed(place, source, is_folder=not place.name), overrides)


def read_remote_config(folder: Remote, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """Return the ledger that the config in a remote folder describes.

    Args:
        folder: the folder.
        overrides: config keys to set over it.
        source: its name in messages.

    Raises:
        BadInput: if there is no config, or it makes no model.
    """
    with one_source():
        stated = config_in(Located("folder", source, place=folder))
        assert stated is not None  # noqa: S101  # a folder has one, or raises
        return _of_config(stated.values, overrides, source)


def _ledger(found: Located, overrides: Mapping[str, Any], *, real: bool = False, keep: bool = False) -> Ledger:
    if found.place is not None:
        return _of_place(found.place, found.kind, overrides, found.name)
    if found.kind == "factory":
        from tallystick.sources.factory.factory import ledger_from_factory

        return ledger_from_factory(found.name, overrides, real=real)
    if found.kind == "module":
        if overrides:
            raise BadInput(f"a live module has no config to set {', '.join(overrides)} in", code="unknown-key")
        from tallystick.sources.torch_module.module import ledger_from_module

        return ledger_from_module(found.given, keep=keep)
    if found.kind == "other":
        raise BadInput(
            f"cannot count {shown(found.given)}: expected a name, a path, a dictionary, a config or an nn.Module",
            code="bad-value",
        )
    if found.kind == "config":
        return _of_config(found.given, overrides, found.name)
    ledger = _of_config(found.given, overrides, found.name, kind="preset")
    if os.path.exists(found.name):
        return ledger.with_notes(f"counted the preset; for the local path write ./{found.name}")
    return ledger


def _of_place(place: Location, kind: str, overrides: Mapping[str, Any], name: str) -> Ledger:
    """Read a folder, a file of weights or a config; `name` is used in messages."""
    if kind == "folder":
        return _of_folder(place, overrides, name)
    if kind == "weights":
        from tallystick.sources.checkpoint.checkpoint import ledger_from_checkpoint

        return ledger_from_checkpoint(place, overrides, source=name)
    return _of_config(values_in(place), overrides, name)


def _of_config(values: Any, overrides: Mapping[str, Any], name: str, *, kind: str = "config") -> Ledger:
    """Read a config; `name` is used in messages."""
    from tallystick.sources.config_ledger import ledger_of_config

    return ledger_of_config(values, overrides, source=name, kind=kind)


def _of_folder(folder: Location, overrides: Mapping[str, Any], name: str) -> Ledger:
    """Read a folder of weights or a config; check a local folder's tokenizer."""
    from tallystick.formats.folder import names_in

    names = names_in(folder)
    ledger = _weights_or_config(folder, names, overrides, name)
    if TOKENIZER in names and isinstance(folder, Path):
        from tallystick.sources.checkpoint.tokenizer import row_notes

        return ledger.with_notes(*row_notes(folder, ledger))
    return ledger


def _weights_or_config(folder: Location, names: list[str], overrides: Mapping[str, Any], name: str) -> Ledger:
    """Read a folder's weights, or its config if it has no weights; `name` is used in messages."""
    from tallystick.formats.folder_weights import weights_in

    if _PIPELINE in names:
        raise BadInput(
            f"{name} is a diffusers pipeline, not a single model{_inside(folder, names)}", code="unsupported"
        )
    if CONFIG not in names and not OTHER_CONFIGS.isdisjoint(names):
        from tallystick.sources.checkpoint.other_folders import ledger_from_own_folder

        if own := ledger_from_own_folder(folder, names, overrides, source=name):
            return own
    found = weights_in(folder, names)
    if found.absent:
        from tallystick.sources.checkpoint.missing_weights import ledger_without_weights

        return ledger_without_weights(folder / CONFIG, found.absent, overrides, source=name)
    if found.path is not None:
        from tallystick.sources.checkpoint.checkpoint import ledger_from_checkpoint

        return ledger_from_checkpoint(found.path, overrides, source=name, shards=found.shards)
    if CONFIG not in names:
        raise BadInput(f"{name} holds neither a {CONFIG} nor weights{_inside(folder, names)}", code="not-found")
    return _of_config(values_in(folder / CONFIG), overrides, name).with_notes(*_unread(names))


# The file in which diffusers lists a pipeline's parts. Each part is a model in its own folder.
_PIPELINE = "model_index.json"


def _inside(folder: Location, names: list[str]) -> str:
    """List the subfolders that hold a config, for an error about the folder around them."""
    parts = [name for name in names if isinstance(folder, Path) and os.path.isfile(folder / name / CONFIG)]
    listed = ", ".join(map(quoted, parts[:5])) + (", …" if len(parts) > 5 else "")
    return f"; name a model in it: {listed}" if parts else ""


def _unread(names: list[str]) -> tuple[str, ...]:
    """Return a note on weights next to a config that are in an unsupported format."""
    from tallystick.formats import NOT_READ
    from tallystick.formats.folder import is_main

    weights = [name for name in names if name.endswith(NOT_READ) or is_main(name)]
    return (f"counted from the config: weights such as {quoted(weights[0])} were not read",) if weights else ()
