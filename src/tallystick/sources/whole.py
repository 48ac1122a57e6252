"""A folder that appears under its name when it is whole, and never before."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallystick.errors import BadInput


@contextmanager
def written_whole(out: Path, *, replace: bool = False, parents: bool = False) -> Iterator[Path]:
    """A new folder beside `out` to write into, which takes its name at the end; after any error nothing of it is left.

    With `replace` a folder that has the name makes way in that moment, and comes back if the new one cannot have it.
    With `parents` the folders above it are made too.

    Raises:
        BadInput: when `out` exists and is not to be replaced, and what a disk refuses.
    """
    if os.path.lexists(out) and not replace:
        raise BadInput(f"{out} exists already, and is not overwritten")
    beside = out.absolute().with_name(f".{out.absolute().name}.{secrets.token_hex(4)}")
    old = beside.with_name(f"{beside.name}.old")
    try:
        beside.mkdir(parents=parents)
        yield beside
        if os.path.lexists(out):
            out.rename(old)
        beside.rename(out)
    except (OSError, shutil.Error) as error:
        raise BadInput(f"{out} could not be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        if os.path.lexists(old) and not os.path.lexists(out):
            old.rename(out)
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
