"""Sources turn what a person has into a `Ledger`. They know formats, and answer no question."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.ledger import Ledger

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def read(source: Any, overrides: Mapping[str, Any]) -> Ledger:
    """The ledger of anything that `tallystick.count` takes, with `overrides` set over its config."""
    if isinstance(source, str):
        return _from_word(source, overrides)
    if isinstance(source, os.PathLike):
        return _from_path(Path(source), overrides)
    from tallystick.sources.config import ledger_from_config

    if isinstance(source, Mapping):
        return ledger_from_config(source, overrides, source="the dictionary")
    if _is_module(source):
        if overrides:
            raise BadInput(f"a live module has no config to set {', '.join(overrides)} in")
        from tallystick.sources.module import ledger_from_module

        return ledger_from_module(source)
    if callable(getattr(source, "to_dict", None)) and not isinstance(source, type):  # a transformers config object
        return ledger_from_config(source.to_dict(), overrides, source=type(source).__name__)
    raise BadInput(f"cannot count {shown(source)}: expected a name, a path, a dictionary, a config or an nn.Module")


def _from_word(word: str, overrides: Mapping[str, Any]) -> Ledger:
    """A preset's name before a path: a folder that happens to be called gpt2 is named ./gpt2."""
    from tallystick.presets import PRESETS

    if word.lower() in PRESETS:
        from tallystick.sources.config import ledger_from_config

        name = word.lower()
        ledger = ledger_from_config(PRESETS[name], overrides, source=name, kind="preset")
        if Path(name).exists():
            ledger.notes += (f"the preset was counted; for the path of that name write ./{name}",)
        return ledger
    path = Path(word)
    if not word or not _exists(path):  # Path("") would be the current folder, which nobody named
        if FACTORY.fullmatch(word):
            from tallystick.sources.factory import ledger_from_factory

            return ledger_from_factory(word, overrides)
        if os.sep not in word:
            raise BadInput(
                f"there is no preset or file {quoted(word)}{nearest(word, PRESETS)}; tallystick presets lists the names"
            )
    return _from_path(path, overrides)


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # never raises, as Path.exists does for a name that is too long


def _is_module(source: object) -> bool:
    # By the names of its classes: asking isinstance would import torch for who has no module to count.
    return any(
        kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in type(source).__mro__
    )


# Weights in formats that are not read, by the ends of their names.
_OTHER_WEIGHTS = (".h5", ".msgpack", ".onnx")


def _from_path(path: Path, overrides: Mapping[str, Any]) -> Ledger:
    """A path to a config, to weights, or to a folder that holds either: weights before the config beside them."""
    from tallystick.sources.config import CONFIG

    if not os.path.isdir(path):
        return _from_file(path, overrides, str(path))
    from tallystick.sources.checkpoint import find_weights
    from tallystick.sources.runs import model_in
    from tallystick.sources.tokenizer import row_notes

    path = model_in(path)
    checkpoint = find_weights(path)
    file = checkpoint or path / CONFIG
    if not os.path.lexists(file):  # a link to nothing is named when it is opened
        raise BadInput(f"{path} holds neither a {CONFIG} nor weights")
    ledger = _from_file(file, overrides, str(path))
    ledger.notes += (*(_unread(path) if checkpoint is None else ()), *row_notes(path, ledger))
    return ledger


def _from_file(path: Path, overrides: Mapping[str, Any], name: str) -> Ledger:
    """A file of weights or a config; `name` is what the user named."""
    from tallystick.sources.config import ledger_from_config
    from tallystick.sources.files import read_json, read_toml
    from tallystick.sources.formats import is_weights

    if is_weights(path.name):
        from tallystick.sources.checkpoint import ledger_from_checkpoint

        return ledger_from_checkpoint(path, overrides, source=name)
    if path.name.endswith(_OTHER_WEIGHTS):
        raise BadInput(f"{name}: {path.suffix} files are not read; name its config.json, or weights in another format")
    values = read_toml(path) if path.suffix == ".toml" else read_json(path)
    return ledger_from_config(values, overrides, source=name)


def _unread(folder: Path) -> tuple[str, ...]:
    """A note on weights that lie beside a config in a format that is not read."""
    from tallystick.sources.formats import is_main

    weights = [name for name in sorted(os.listdir(folder)) if name.endswith(_OTHER_WEIGHTS) or is_main(name)]
    return (f"counted from the config: weights such as {quoted(weights[0])} were not read",) if weights else ()
