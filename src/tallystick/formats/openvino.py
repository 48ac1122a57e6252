"""Recognise OpenVINO's weights and refuse them: only the ``.xml`` describes the ``.bin``."""

from __future__ import annotations

import os  # its exists() never raises; Path.exists does for a name that is too long
from pathlib import Path
from typing import NoReturn

from tallystick.errors import BadInput
from tallystick.files.local import OpenFile

_GRAPH = ".xml"


def sniff(file: OpenFile) -> bool:
    """Return whether the ``.xml`` of the same name is in the same folder."""
    path = file.path
    return isinstance(path, Path) and os.path.exists(path.parent / (path.name.removesuffix(".bin") + _GRAPH))


def read(file: OpenFile) -> NoReturn:
    """Raise `BadInput`: this format is not read."""
    raise BadInput(
        f"{file.path} holds OpenVINO weights, which are not supported: name the folder with its config.json",
        code="unsupported",
    )
