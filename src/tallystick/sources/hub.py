"""What the user named as a checkpoint: a path, or a repository of the Hugging Face hub, whose files are fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tallystick.errors import BadInput, quoted
from tallystick.sources.runs import model_in

_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_ALWAYS = ["*.json", "merges.txt"]  # config, index, tokenizer
_WEIGHTS = ["*.safetensors"], ["*.bin"]  # pickles only where there is nothing else


def local(source: str | os.PathLike[str]) -> Path:
    """The path itself where it exists, or the model in it of a run; else the folder in the hub's cache that holds the repository of that name.

    Args:
        source: a path, or a repository such as ``"gpt2"`` and ``"org/name"``.

    Raises:
        BadInput: where there is neither, or the hub cannot be asked.
    """
    path, name = Path(source), os.fspath(source)
    try:
        exists = os.path.lexists(path)
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(name)} is no path: {error}", code="bad-value") from None
    if exists:
        return model_in(path)
    if "://" in name:
        raise BadInput(
            f"{name} is read by its headers alone, and this needs its values: name a folder, or org/name of the hub",
            code="unsupported",
        )
    if not _REPOSITORY.fullmatch(name) or name.startswith("."):
        raise BadInput(f"there is no file or folder {quoted(name)}", code="not-found")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise BadInput(
            f"there is no folder {quoted(name)}; to fetch a repository of that name: pip install huggingface_hub",
            code="not-found",
        ) from None
    folder = Path()
    for weights in _WEIGHTS:
        try:
            folder = Path(snapshot_download(name, allow_patterns=[*_ALWAYS, *weights]))
        except Exception as error:  # its own, those of the client beneath it, and the system's
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BadInput(
                f"there is no folder {quoted(name)}, and the repository could not be fetched: {why}", code="unreachable"
            ) from None
        if any(folder.glob(weights[0])):
            break
    return folder
