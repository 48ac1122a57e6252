"""Write the command line and the Python code that give the page's answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command(name: str, *words: str, sets: Mapping[str, Mapping[str, Any]], **options: Any) -> str:
    """Return a command line.

    Args:
        name: the command.
        words: its positional arguments.
        sets: config keys and values of each ``--set`` option.
        options: further options, by Python name.

    >>> command("memory", "gpt2", sets={"--set": {"n_layer": 24}}, kv_dtype="fp8")
    'tallystick memory gpt2 --set n_layer=24 --kv-dtype fp8'
    """
    line = ["tallystick", name, *words]
    for option, settings in sets.items():
        if settings:
            line += [option, *(f"{key}={_json(value)}" for key, value in settings.items())]
    for option, value in options.items():
        line += [f"--{option.replace('_', '-')}", str(value)]
    return shlex.join(line)


def python(name: str, *models: tuple[str, Mapping[str, Any]] | str, **options: Any) -> str:
    """Return lines of Python.

    Args:
        name: the function of tallystick.
        models: a word, or a source with its settings.
        options: keyword arguments.

    >>> print(python("memory", ("gpt2", {"n_layer": 24}), batch=8))
    import tallystick
    answer = tallystick.memory(tallystick.count('gpt2', n_layer=24), batch=8)
    """
    words = [_model(*one, alone=name == "count") if isinstance(one, tuple) else repr(one) for one in models]
    words += [f"{key}={value!r}" for key, value in options.items()]
    return f"import tallystick\nanswer = tallystick.{name}({', '.join(words)})"


def _model(word: str, settings: Mapping[str, Any], *, alone: bool) -> str:
    if not all(key.isidentifier() for key in settings):
        said = [f"**{dict(settings)!r}"]
    else:
        said = [f"{key}={value!r}" for key, value in settings.items()]
    words = ", ".join([repr(word), *said])
    return words if alone or not settings else f"tallystick.count({words})"


def _json(value: Any) -> str:
    """Return a value for ``--set``; quote a word that would be parsed as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)
