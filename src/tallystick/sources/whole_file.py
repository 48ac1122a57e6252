"""A file that appears under its name when it is whole, and never before."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tallystick.errors import BadInput


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file as ``.NAME.partial`` and rename it. After any error the old file stays.

    The partial file is always a new one: a link of that name is removed, not written through.

    Raises:
        BadInput: where the disk is full or cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        with partial.open("xb", buffering=0) as file:
            for piece in [content] if isinstance(content, bytes) else content:
                append(file.fileno(), piece)
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        _drop(partial)
        raise BadInput(f"{path} could not be written: {error.strerror or error}") from None
    except BaseException:
        _drop(partial)
        raise


def append(descriptor: int, content: bytes) -> None:
    """Write all of it: a disk may take a part, and say only at the next call that it is full."""
    while content:
        content = content[os.write(descriptor, content) :]


def _drop(partial: Path) -> None:
    with suppress(OSError):  # it is a folder, or in one that is gone: what failed is said already
        partial.unlink(missing_ok=True)
