"""Decide what the user named: a preset, config, file, folder, module or factory.

`locate` classifies a source and opens no file. `config_in` returns the source's config, if it has
one. `locate_weights` returns a local path for callers that need tensor values; it may fetch a
repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tallystick.core.config import CONFIG, OTHER_CONFIGS
from tallystick.errors import BadInput, code_of, nearest, quoted

if TYPE_CHECKING:
    from tallystick.files.remote import Location

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
ADDRESS = re.compile(r"(hf|https?|s3|gs):", re.IGNORECASE)
REPOSITORY = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}", re.ASCII)
_FETCHED = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)  # the oldest repositories have no organisation
_YAML = (".yaml", ".yml")


class Located(NamedTuple):
    """A classified source."""

    kind: Literal["preset", "config", "factory", "module", "weights", "file", "folder", "other"]
    name: str  # the user's name for it, used in messages
    given: Any = None  # a config's values, a live module, or the object itself
    place: Location | None = None  # the path or address of a file or folder


class Stated(NamedTuple):
    """A config and its origin."""

    values: Any  # a dictionary, unless the file holds something else
    where: str


def locate(source: Any) -> Located:
    """Classify a source by its name, path or type. No file is opened.

    A preset comes before a path: name a folder called gpt2 as ./gpt2.

    Args:
        source: the model as the user gave it.

    Raises:
        BadInput: if nothing has that name. The message suggests similar names.
    """
    if isinstance(source, str):
        return _by_word(source)
    if isinstance(source, os.PathLike):
        return _by_path(Path(source))
    if isinstance(source, Mapping):
        return Located("config", "the dictionary", source)
    if _is_module(source):
        return Located("module", type(source).__name__, source)
    if callable(getattr(source, "to_dict", None)) and not isinstance(source, type):  # a transformers config object
        return Located("config", type(source).__name__, source.to_dict())
    return Located("other", type(source).__name__, source)


def config_in(found: Located) -> Stated | None:
    """Return the config of a source, or None if the source has no config.

    The config may be the source itself, a file in the named folder, or a factory module's
    dictionary.

    Args:
        found: the source, from `locate`.

    Raises:
        BadInput: if the config cannot be read.
    """
    if found.kind in ("preset", "config"):
        return Stated(found.given, found.name)
    if found.kind == "factory":
        from tallystick.sources.factory.factory import find

        target = find(found.name)  # GPT_CONFIG_124M, as books define it
        return Stated(target, found.name) if isinstance(target, Mapping) else None
    if found.place is None or found.kind == "weights":
        return None
    path = found.place if found.kind == "file" else _config_of(found.place)
    return Stated(values_in(path), str(path))


def values_in(path: Location) -> Any:
    """Return the content of a config file: JSON, TOML, flat YAML, or a pasted Python dictionary.

    Args:
        path: a local or remote file.

    Raises:
        BadInput: if the file cannot be read or parsed.
    """
    from tallystick.files.texts import keep_json, read_text, read_toml

    if path.name.endswith(_YAML):
        from tallystick.files.flat_yaml import read_flat_yaml

        return read_flat_yaml(path)
    if path.suffix == ".toml":
        return read_toml(path)
    text = read_text(path)
    keep_json(text, path)
    return config_of(text, str(path))


def config_of(text: str, source: str) -> Any:
    """Return the config in a text: JSON, or its only Python dictionary.

    Args:
        text: the text of a config file.
        source: its name, for messages.

    Raises:
        BadInput: if the text holds neither, or several dictionaries.
    """
    from tallystick.files.texts import NotJSON, parsed_json

    try:
        return parsed_json(text, source)
    except NotJSON:
        from tallystick.sources.configs.pasted import dictionary_in

        if (values := dictionary_in(text, source)) is None:
            raise
        return values


def locate_weights(source: str | os.PathLike[str]) -> Path:
    """Return the local path of a checkpoint's weights, fetching a hub repository if needed.

    Args:
        source: a path, or a hub repository such as ``"gpt2"`` or ``"org/name"``, which is fetched.

    Raises:
        BadInput: if there is neither a path nor a repository of that name, or the hub fails.
    """
    path, name = Path(source), os.fspath(source)
    try:
        exists = os.path.lexists(path)
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(name)} is not a path: {error}", code="bad-value") from None
    if exists:
        from tallystick.sources.run_folder import model_in

        return model_in(path)
    if "://" in name:
        raise BadInput(
            f"only headers of {name} are read, but this needs values: name a folder, or org/name on the hub",
            code="bad-value",
        )
    if not _FETCHED.fullmatch(name) or name.startswith("."):
        raise BadInput(f"there is no file or folder {quoted(name)}", code="not-found")
    from tallystick.files.hub import fetched

    return fetched(name)


def _config_of(folder: Location) -> Location:
    """Return the config file of a folder; Hugging Face's config.json comes first."""
    from tallystick.formats.folder import names_in

    own = [] if (names := names_in(folder)) and CONFIG in names else sorted(OTHER_CONFIGS.intersection(names))
    return folder / (own[0] if own else CONFIG)


def _by_word(word: str) -> Located:
    if "://" in word:
        from tallystick.files.addresses import elsewhere

        return placed(place := elsewhere(word), str(place), is_folder=not _names_a_file(place.name))
    if os.sep not in word and not _names_a_file(word):  # no preset has such a name
        from tallystick.presets import PRESETS

        if word.lower() in PRESETS:
            return Located("preset", word.lower(), PRESETS[word.lower()])
    refuse_python(word)
    if word and os.path.exists(word):  # Path("") would be the current folder
        return _by_path(Path(word))
    if ADDRESS.match(word):
        raise BadInput(
            f"there is no file {quoted(word)}; addresses have two slashes after the colon, as in hf://org/name",
            code="not-found",
        )
    if FACTORY.fullmatch(word):
        return Located("factory", word)
    if os.sep not in word:
        from tallystick.presets import PRESETS

        raise BadInput(
            f"there is no preset or file {quoted(word)}{nearest(word, PRESETS)}; `tallystick presets` lists the names",
            code="not-found",
        )
    if REPOSITORY.fullmatch(word) and not _names_a_file(word) and not os.path.isdir(os.path.dirname(word)):
        return _on_hub(word)
    try:
        os.stat(word)
    except OSError as error:  # said of the user's own word: a Path would drop the ./ before it
        raise BadInput(f"{word}: {error.strerror}", code=code_of(error)) from None
    except ValueError:  # an embedded null byte
        pass
    return _by_path(Path(word))


def _on_hub(repository: str) -> Located:
    """Return the hub's repository org/name: nothing on this machine has that name."""
    from tallystick.files.addresses import elsewhere

    try:
        place = elsewhere(f"hf://{repository}")
    except BadInput as error:
        raise BadInput(
            f"there is no file or folder {quoted(repository)}; on the hub: {error}", code=error.code
        ) from None
    return Located("folder", str(place), place=place)


def _by_path(path: Path) -> Located:
    if not os.path.isdir(path):
        return placed(path, str(path), is_folder=False)
    from tallystick.sources.run_folder import model_in

    return placed(model := model_in(path), str(model), is_folder=True)


def placed(place: Location, name: str, *, is_folder: bool) -> Located:
    """Classify a file or folder by its name.

    Args:
        place: its path or address.
        name: the user's name for it, for messages.
        is_folder: whether it is a folder.

    Raises:
        BadInput: for a file of weights in a format that cannot be read.
    """
    if is_folder:
        return Located("folder", name, place=place)
    from tallystick.formats import NOT_READ, is_weights

    if place.name.endswith(NOT_READ):
        raise BadInput(
            f"{name}: {place.suffix} files are not supported; name its config.json, or weights in another format",
            code="unsupported",
        )
    return Located("weights" if is_weights(place.name) else "file", name, place=place)


def _names_a_file(word: str) -> bool:
    """Return whether a name has the file extension of weights or a config."""
    if "." not in word:
        return False
    from tallystick.formats import NOT_READ, is_weights

    return is_weights(word) or word.endswith((".json", ".toml", *_YAML, *NOT_READ))


def refuse_python(word: str) -> None:
    """Raise `BadInput` for a Python file or a module without a factory.

    The message says what to write.
    """
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
        " nn.Module, or for a config's dictionary"
        + (f" (run this in {quoted(str(Path(file).parent))})" if absolute else ""),
        code="bad-value",
    )


def _is_here(name: str) -> bool:
    """Return whether the current directory holds a module or package of that name."""
    return bool(re.fullmatch(r"[A-Za-z_][\w.]*", name)) and any(
        os.path.isfile(name.replace(".", os.sep) + end) for end in (".py", os.sep + "__init__.py")
    )


def _is_module(source: object) -> bool:
    # Compare class names: isinstance would import torch even when there is no module to count.
    return any(
        kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in type(source).__mro__
    )
