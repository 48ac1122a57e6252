"""OpenVINO's weights: a ``.bin`` beside the graph that alone says what is in it. They are known, and not read."""

from __future__ import annotations

import os  # whose exists never raises, as Path.exists does for a name that is too long
from pathlib import Path
from typing import NoReturn

from tallystick.errors import BadInput
from tallystick.files.local import OpenFile

_GRAPH = ".xml"


def sniff(file: OpenFile) -> bool:
    """Whether the graph of that name lies beside a file."""
    path = file.path
    return isinstance(path, Path) and os.path.exists(path.parent / (path.name.removesuffix(".bin") + _GRAPH))


def read(file: OpenFile) -> NoReturn:
    """Refuse it."""
    raise BadInput(f"{file.path} holds OpenVINO's weights, which are not read: name the folder with its config.json")
