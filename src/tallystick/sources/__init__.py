"""Sources turn what a person has into a `Ledger`. They know formats, and answer no question."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.budget import one_source
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.ledger import Ledger

if TYPE_CHECKING:
    from tallystick.files.remote import Location

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
ADDRESS = re.compile(r"(hf|https?|s3|gs):", re.IGNORECASE)
REPOSITORY = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}", re.ASCII)


def read(source: Any, overrides: Mapping[str, Any], part: str | None = None, *, keep: bool = False) -> Ledger:
    """The ledger of anything that `tallystick.count` takes, or of its `part`, with `overrides` set over its config.

    `keep` asks for a ledger that keeps a live module's tensors, to compare their values at once.
    """
    with one_source():
        return _read(source, overrides, part, keep=keep)


def _read(source: Any, overrides: Mapping[str, Any], part: str | None, *, keep: bool) -> Ledger:
    if part is not None:
        from tallystick.sources.language import ledger_of_language

        if part != "text":
            raise BadInput(f"part is {shown(part)}, expected text")
        return ledger_of_language(source, overrides)
    if isinstance(source, str):
        return _from_word(source, overrides)
    if isinstance(source, os.PathLike):
        return _from_path(Path(source), overrides)
    from tallystick.sources.quantised import ledger_of_config

    if isinstance(source, Mapping):
        return ledger_of_config(source, overrides, source="the dictionary")
    if _is_module(source):
        if overrides:
            raise BadInput(f"a live module has no config to set {', '.join(overrides)} in")
        from tallystick.sources.module import ledger_from_module

        return ledger_from_module(source, keep=keep)
    if callable(getattr(source, "to_dict", None)) and not isinstance(source, type):  # a transformers config object
        return ledger_of_config(source.to_dict(), overrides, source=type(source).__name__)
    raise BadInput(f"cannot count {shown(source)}: expected a name, a path, a dictionary, a config or an nn.Module")


def _from_word(word: str, overrides: Mapping[str, Any]) -> Ledger:
    """A preset's name before a path: a folder that happens to be called gpt2 is named ./gpt2."""
    from tallystick.presets import PRESETS

    if "://" in word:
        return _from_elsewhere(word, overrides)
    if word.lower() in PRESETS:
        from tallystick.sources.quantised import ledger_of_config

        name = word.lower()
        ledger = ledger_of_config(PRESETS[name], overrides, source=name, kind="preset")
        if Path(name).exists():
            ledger.notes += (f"the preset was counted; for the path of that name write ./{name}",)
        return ledger
    refuse_python(word)
    path = Path(word)
    if not word or not os.path.exists(path):  # Path("") would be the current folder, which nobody named
        if ADDRESS.match(word):
            raise BadInput(
                f"there is no file {quoted(word)}; an address has two slashes after its colon, as hf://org/name"
            )
        if FACTORY.fullmatch(word):
            from tallystick.sources.factory import ledger_from_factory

            return ledger_from_factory(word, overrides)
        if os.sep not in word:
            raise BadInput(
                f"there is no preset or file {quoted(word)}{nearest(word, PRESETS)}; tallystick presets lists the names"
            )
        if REPOSITORY.fullmatch(word) and not _names_a_file(word):
            raise BadInput(
                f"there is no file or folder {quoted(word)}; the hub's repository of that name is hf://{word}"
            )
    return _from_path(path, overrides)


def refuse_python(word: str) -> None:
    """Refuse a file of Python, or a module without the factory in it, with what to write instead."""
    file, is_file, factory = re.fullmatch(r"(.*?)(\.py)?(:[A-Za-z_][\w.]*)?", word, re.DOTALL).groups()  # type: ignore[union-attr]
    name = ".".join(part for part in Path(file).parts if part not in (".", os.sep))
    if not is_file and (factory or os.path.exists(word) or not _is_here(name)):
        return
    absolute = os.path.isabs(file) or ".." in Path(file).parts
    module = Path(file).name if absolute else name
    there = os.path.exists(file + ".py") or _is_here(name)
    what = f"{quoted(word)} is a module of Python" if there else f"there is no file {quoted(file + '.py')}"
    raise BadInput(
        f"{what}: write package.module:factory, such as {module}{factory or ':build'}, for a function that returns an"
        " nn.Module" + (f" (run this in {quoted(str(Path(file).parent))})" if absolute else "")
    )


def _is_here(name: str) -> bool:
    """Whether a name is that of a module or a package in the current directory."""
    return bool(re.fullmatch(r"[A-Za-z_][\w.]*", name)) and any(
        os.path.isfile(name.replace(".", os.sep) + end) for end in (".py", os.sep + "__init__.py")
    )


def _is_module(source: object) -> bool:
    # By the names of its classes: asking isinstance would import torch for who has no module to count.
    return any(
        kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in type(source).__mro__
    )


_YAML = (".yaml", ".yml")


def _names_a_file(word: str) -> bool:
    """Whether a name ends as those of weights and configs do."""
    from tallystick.formats import NOT_READ, is_weights

    return is_weights(word) or word.endswith((".json", ".toml", *_YAML, *NOT_READ))


def _from_path(path: Path, overrides: Mapping[str, Any]) -> Ledger:
    """A path to a config, to weights, or to a folder that holds either."""
    if not os.path.isdir(path):
        return _from_file(path, overrides, str(path))
    from tallystick.sources.runs import model_in
    from tallystick.sources.tokenizer import row_notes

    path = model_in(path)
    ledger = _from_folder(path, overrides, str(path))
    ledger.notes += row_notes(path, ledger)
    return ledger


def _from_elsewhere(address: str, overrides: Mapping[str, Any]) -> Ledger:
    """A file or folder that is not on this machine: its name tells which, and headers alone are fetched."""
    from tallystick.files.addresses import elsewhere

    place = elsewhere(address)
    read_place = _from_file if _names_a_file(place.name) else _from_folder
    ledger = read_place(place, overrides, str(place))
    ledger.fetched = place.store.tally.fetched
    ledger.notes += (str(ledger.fetched),)
    return ledger


def _from_folder(folder: Location, overrides: Mapping[str, Any], name: str) -> Ledger:
    """A folder of weights or of a config: weights before the config beside them; `name` is what the user named."""
    from tallystick.config import CONFIG
    from tallystick.formats.folder import find_weights, names_in
    from tallystick.sources.own_configs import NAMES as OWN_CONFIGS

    names = names_in(folder)
    if _PIPELINE in names:
        raise BadInput(f"{name} is a pipeline of diffusers, and not one model{_inside(folder, names)}")
    if CONFIG in names:
        from tallystick.sources.absent import absent_from, ledger_without_weights

        if absent := absent_from(folder, names):
            return ledger_without_weights(folder / CONFIG, absent, overrides, source=name)
    elif not OWN_CONFIGS.isdisjoint(names):
        from tallystick.sources.own_folders import ledger_from_own_folder

        if own := ledger_from_own_folder(folder, names, overrides, source=name):
            return own
    checkpoint = find_weights(folder, names)
    if checkpoint is None and CONFIG not in names:
        raise BadInput(f"{name} holds neither a {CONFIG} nor weights{_inside(folder, names)}")
    ledger = _from_file(checkpoint or folder / CONFIG, overrides, name)
    ledger.notes += _unread(names) if checkpoint is None else ()
    return ledger


# What diffusers calls the list of a pipeline's parts, each a model in a folder of its own.
_PIPELINE = "model_index.json"


def _inside(folder: Location, names: list[str]) -> str:
    """The folders in a folder that hold a config, for whoever named the one around them."""
    from tallystick.config import CONFIG

    parts = [name for name in names if isinstance(folder, Path) and os.path.isfile(folder / name / CONFIG)]
    listed = ", ".join(map(quoted, parts[:5])) + (", …" if len(parts) > 5 else "")
    return f"; name a model in it: {listed}" if parts else ""


def _from_file(path: Location, overrides: Mapping[str, Any], name: str) -> Ledger:
    """A file of weights or a config; `name` is what the user named."""
    from tallystick.formats import NOT_READ, is_weights
    from tallystick.sources.quantised import ledger_of_config

    if is_weights(path.name):
        from tallystick.sources.checkpoint import ledger_from_checkpoint

        return ledger_from_checkpoint(path, overrides, source=name)
    if path.name.endswith(NOT_READ):
        raise BadInput(f"{name}: {path.suffix} files are not read; name its config.json, or weights in another format")
    return ledger_of_config(_values(path), overrides, source=name)


def _values(path: Location) -> Any:
    """What the file of a config holds."""
    from tallystick.files.texts import keep_json, read_text, read_toml
    from tallystick.sources.pasted import config_of

    if path.name.endswith(_YAML):
        from tallystick.files.flat_yaml import read_flat_yaml

        return read_flat_yaml(path)
    if path.suffix == ".toml":
        return read_toml(path)
    text = read_text(path)
    keep_json(text, path)
    return config_of(text, str(path))


def _unread(names: list[str]) -> tuple[str, ...]:
    """A note on weights that lie beside a config in a format that is not read."""
    from tallystick.formats import NOT_READ
    from tallystick.formats.folder import is_main

    weights = [name for name in names if name.endswith(NOT_READ) or is_main(name)]
    return (f"counted from the config: weights such as {quoted(weights[0])} were not read",) if weights else ()
