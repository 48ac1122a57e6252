"""Validate the page's requests: the model, its settings, run options and picture options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from tallystick.core.config import LARGEST
from tallystick.core.ledger import Ledger
from tallystick.derivations.reader import LARGEST_TEXT
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.presets import PRESETS
from tallystick.sources.locate import REPOSITORY
from tallystick.web.page_files import config_of_files, hand_in, ledger_of_files, store_of

A = TypeVar("A")

MOST_CONFIG = 1_000_000  # characters of a pasted config; real ones have some thousands
MOST_NAME = 200
MOST_VERSION = 1_000_000  # characters: a time for each of a source's files
DEEPEST = 200  # brackets in brackets of a pasted config; real ones have some ten
MOST_SET = 1_000  # config keys; the largest configs have some hundreds
NARROWEST, WIDEST = 280, 1600  # pixels of a picture


class PageRequest:
    """One request of the page.

    `source` is the command's own source. It is the only file or code of this machine that a request
    may name.
    """

    def __init__(self, request: object, source: str | None) -> None:
        self._values = _object(request, "the request")
        self._source = source
        self.waiting = "model"  # whose files are read, or were read last
        self._known: dict[str, Any] = {}
        for part, pieces in _object(self._values.get("pieces", {}), "pieces").items():
            hand_in(store_of(*_files(_object(self._values.get(part), part))), pieces)

    @property
    def wanted(self) -> list[str]:
        """The names of the requested answers."""
        wanted = self._values.get("wanted")
        if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
            raise BadInput(f"wanted is {shown(wanted)}, expected a list of the names of answers", code="bad-value")
        return list(dict.fromkeys(wanted))

    def ledger(self, model: str = "model", settings: str = "set") -> Ledger:
        """Return the ledger of the model in question, or of the `other` one."""
        self.waiting = model
        return _ledger(
            _written(_object(self._values.get(model, {}), model)), _written(self.settings(settings)), self._source
        )

    @property
    def compares(self) -> bool:
        """Whether another model is named."""
        return bool(_object(self._values.get("other", {}), "other"))

    def once(self, name: str, ask: Callable[[], A]) -> A:
        """Return an answer that several of the page's answers need; it is asked for once."""
        if name not in self._known:
            self._known[name] = ask()
        known: A = self._known[name]
        return known

    def described(self, ledger: Ledger) -> Ledger:
        """Return the ledger that the config among the model's files describes, if there is one.

        Args:
            ledger: the model's; it is returned if its files hold no config of a known model.
        """
        given = _object(self._values.get("model", {}), "model")
        if "files" not in given or ledger.evidence.described is None:
            return ledger
        try:
            return _config(_written(given))
        except BadInput:
            return ledger

    def depths(self, key: str) -> tuple[int, int | None]:
        """Return the fewest and the most layers that a config key may say; None is without limit.

        A config that lists the kind of each layer may describe no deeper model, or no other depth.
        """
        given = _object(self._values.get("model", {}), "model")
        return (1, None) if "files" in given else _depths(_written(given), self._source, key)

    def word(self, model: str = "model") -> str:
        """Return the model's word in a command line: a name, or the pasted or dropped file."""
        given = _object(self._values.get(model), model)
        if "files" in given:
            source, sizes, _ = _files(given)
            if REPOSITORY.fullmatch(source) or source in sizes:
                return source
            return f"hf://{source}" if "/" in source else f"./{source}"
        return _text(given, "name", MOST_NAME) if "name" in given else _file(given)

    def settings(self, name: str = "set") -> dict[str, Any]:
        """Return the config keys to set."""
        found = _object(self._values.get(name, {}), name)
        if len(found) > MOST_SET:
            raise BadInput(f"{name} has {len(found):,} keys, more than the {MOST_SET:,} allowed", code="too-large")
        return found

    def options(self, name: str, known: Mapping[str, type]) -> dict[str, Any]:
        """Return an answer's options by name, without those that are null or empty."""
        given = {
            key: value for key, value in _object(self._values.get(name, {}), name).items() if value not in (None, "")
        }
        for key, value in given.items():
            if key not in known:
                raise BadInput(f"{name} has no option {quoted(key)}{nearest(key, known)}", code="unknown-key")
            if type(value) is not known[key]:
                raise BadInput(
                    f"{key} is {shown(value)}, expected {'a word' if known[key] is str else 'an integer'}",
                    code="bad-value",
                )
        return given

    def choice(self, name: str, among: tuple[str, ...]) -> str:
        """Return one of several words; the first if none is given."""
        value = self._values.get(name, among[0])
        if value not in among:
            raise BadInput(f"{name} is {shown(value)}, expected one of {', '.join(among)}", code="bad-value")
        return str(value)

    def flag(self, name: str) -> bool:
        """Return whether something is asked for; by default it is not."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise BadInput(f"{name} is {shown(value)}, expected true or false", code="bad-value")
        return value

    @property
    def claim(self) -> str:
        """The claimed count."""
        return _text(self._values, "claim", MOST_NAME)

    @property
    def text(self) -> str:
        """The derivation's text."""
        return _text(self._values, "text", LARGEST_TEXT - 1)

    @property
    def width(self) -> int:
        """The picture's width in pixels."""
        width = self._values.get("width", WIDEST)
        if type(width) is not int:
            raise BadInput(f"width is {shown(width)}, expected pixels", code="bad-value")
        return min(max(width, NARROWEST), WIDEST)


def _written(part: dict[str, Any]) -> str:
    """Return a part of the request as JSON, as a cache key."""
    return json.dumps(part, sort_keys=True)


@lru_cache(maxsize=8)
def _ledger(model: str, settings: str, source: str | None) -> Ledger:
    """Return a model's ledger, cached because one slider movement asks for several answers."""
    from tallystick import count

    given, overrides = json.loads(model), json.loads(settings)
    for kind, read in _KINDS.items():
        if kind in given:
            return read(given, overrides)
    name = _text(given, "name", MOST_NAME)
    if name != source and name.lower() not in PRESETS:
        raise BadInput(
            f"unknown model {quoted(name)}{nearest(name, PRESETS)}; to open a local file, drop it here or run"
            " tallystick explore PATH",
            code="unknown-name",
        )
    return count(name, **overrides)


@lru_cache(maxsize=64)
def _depths(model: str, source: str | None, key: str) -> tuple[int, int | None]:
    """Return whether a model may have fewer or more layers than its config says."""
    recipe = _ledger(model, "{}", source).model.recipe
    value = recipe.values.get(key) if recipe else None

    def accepts(depth: int) -> bool:
        try:
            _ledger(model, _written({key: depth}), source)
        except BadInput:
            return False
        return True

    if not isinstance(value, int) or value < 2:
        return 1, None
    return 1 if accepts(value - 1) else value, None if accepts(2 * value) else value


def forget() -> None:
    """Clear the cache of ledgers."""
    _ledger.cache_clear()
    _depths.cache_clear()
    _config.cache_clear()


def _pasted(given: Mapping[str, Any], overrides: Mapping[str, Any]) -> Ledger:
    from tallystick.sources.config_ledger import ledger_of_config
    from tallystick.sources.locate import config_of

    name = _file(given)
    text = _text(given, "config", MOST_CONFIG)
    if _depth(text) > DEEPEST:
        raise BadInput(f"{name} is nested too deeply", code="too-large")
    values = config_of(text, name)
    return ledger_of_config(values, overrides, source=name)


def _depth(text: str) -> int:
    """Return how deep brackets stand in brackets: Python in a browser does not survive too many."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\](){}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


def _dropped(given: Mapping[str, Any], overrides: Mapping[str, Any]) -> Ledger:
    from tallystick.sources.checkpoint.checkpoint import ledger_from_header

    name, size = _file(given), given.get("bytes")
    if overrides:
        raise BadInput(f"{name} has no config, so there is no {', '.join(overrides)} to set", code="unknown-key")
    if type(size) is not int or not 0 <= size <= LARGEST:
        raise BadInput(f"bytes is {shown(size)}, expected the size of {name} after its header", code="bad-value")
    return ledger_from_header(_text(given, "header", None), size, source=name)


def _of_files(given: Mapping[str, Any], overrides: Mapping[str, Any]) -> Ledger:
    files = _files(given)
    return ledger_of_files(store_of(*files), overrides, source=files[0])


@lru_cache(maxsize=8)
def _config(model: str) -> Ledger:
    """Return the ledger of the config among a model's files."""
    files = _files(json.loads(model))
    return config_of_files(store_of(*files), {}, source=files[0])


def _files(given: Mapping[str, Any]) -> tuple[str, dict[str, Any], str]:
    """Return the name of what holds a model's files, their sizes and their version."""
    files = _object(given.get("files"), "files")
    version = _text(files, "version", MOST_VERSION) if "version" in files else ""
    return _text(files, "source", MOST_NAME), _object(files.get("sizes"), "sizes"), version


_KINDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Ledger]] = {
    "config": _pasted,
    "header": _dropped,
    "files": _of_files,
}


def _file(given: Mapping[str, Any]) -> str:
    return _text(given, "file", MOST_NAME) if given.get("file") else "config.json"


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{what} is {shown(value)}, expected an object", code="bad-value")
    return value


def _text(values: Mapping[str, Any], name: str, most: int | None) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{name} is {shown(value)}, expected text", code="bad-value")
    if most is not None and len(value) > most:
        raise BadInput(f"the {name} has {len(value):,} characters, more than the {most:,} allowed", code="too-large")
    return value
