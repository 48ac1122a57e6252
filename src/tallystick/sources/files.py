"""Opening what the user named: a regular file of a known size, or one line that says why not."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any, BinaryIO

from tallystick.budget import current, one_source
from tallystick.errors import BadInput, code_of, quoted
from tallystick.sources.remote import Location, Remote

# A config or an index is text written by a program; the largest real index is under 20 MB.
LARGEST_JSON = 100_000_000
LARGEST_TOML = 1_000_000  # bytes: a config that people write

# Bytes that Python takes for each list, object, string, member of an object and comma of a JSON text, at most.
_COSTS = {"[": 88, "{": 80, '"': 32, ":": 120, ",": 44}
_WIDTHS = (
    (re.compile(rb"[\xf0-\xff]"), 4),
    (re.compile(rb"[\xc4-\xef]"), 2),
)  # of a text with such a byte, per character

# What git writes into a file that it could not merge.
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: .{0,60}|$)", re.MULTILINE)

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)

LFS_POINTER = b"version https://git-lfs"


class NotJSON(BadInput):
    """A text that is none, and may be something else."""

    code = "malformed"


def exists(path: Location) -> bool:
    """Whether there is such a file or folder; never raises, as `Path.exists` does for a name that is too long."""
    return path.exists() if isinstance(path, Remote) else os.path.exists(path)


def open_regular(path: Location) -> tuple[BufferedReader, int]:
    """The file opened for reading, and its size in bytes. Pipes and devices are refused, not waited for."""
    if isinstance(path, Remote):
        return path.open()
    try:
        # Looked at before it is opened, since opening some devices does something; and again when it is open.
        _refuse_others(path, path.stat())
        # Without O_NONBLOCK, a file swapped for a FIFO after the look above would hang the open.
        file = os.fdopen(os.open(path, _READ), "rb")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}", code=code_of(error)) from None
    except BadInput:  # a ValueError itself
        raise
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(str(path))} is no path: {error}", code="bad-value") from None
    status = os.fstat(file.fileno())
    try:
        _refuse_others(path, status)
        if status.st_size == 0:
            raise BadInput(f"{path} is empty", code="truncated")
    except BadInput:
        file.close()
        raise
    return file, status.st_size


def _refuse_others(path: Location, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        folder = stat.S_ISDIR(status.st_mode)
        raise BadInput(
            f"{path} is {'a folder, expected a file' if folder else 'not a regular file'}", code="unreadable"
        )


def read_all_of(file: BinaryIO, length: int) -> bytes:
    """So many bytes from where a file stands, which it has: fewer are there only if it was changed meanwhile."""
    content = file.read(length)
    if len(content) < length:
        raise BadInput("the file became shorter while it was read", code="changed")
    return content


def refuse_pointer(path: Location, start: bytes) -> None:
    """A clone without Git LFS holds a small text file where the real one should be."""
    if start.startswith(LFS_POINTER):
        raise BadInput(
            f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` in its folder", code="incomplete"
        )


def read_bytes(path: Location, most: int = LARGEST_JSON) -> bytes:
    """A whole text file as it is stored."""
    file, size = open_regular(path)
    with file:
        if size > most:
            raise BadInput(f"{path} has {size:,} bytes: too large for a config or an index", code="too-large")
        content = file.read(size)
    refuse_pointer(path, content)
    return content


def read_text(path: Location, most: int = LARGEST_JSON) -> str:
    """A whole text file as UTF-8."""
    content = read_bytes(path, most)
    budget, width = current(), next((width for widest, width in _WIDTHS if widest.search(content)), 1)
    try:
        budget.read(len(content))
        budget.keep(len(content) * width, "its text")
        budget.keep(-len(content) * width, "its text")  # no text is kept for long
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text: byte {error.start} is not UTF-8", code="malformed") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None


def read_json(path: Location) -> Any:
    """A whole JSON file. The budget of the source keeps what its values take."""
    text = read_text(path)
    keep_json(text, path)
    return parsed_json(text, path)


@contextmanager
def json_within(path: Location) -> Iterator[Any]:
    """A whole JSON file, of which nothing is kept afterwards."""
    with one_source() as budget:
        text = read_text(path)
        size, cost = len(text.encode()), keep_json(text, path)
        values = parsed_json(text, path)
        del text
        try:
            yield values
        finally:
            budget.keep(-cost, "its values")
            budget.read(-size)


def keep_json(text: str, path: Location) -> int:
    """Take what the values of a JSON text need from the budget of the source; the bytes of it."""
    marks = {mark: text.count(mark) for mark in _COSTS}
    cost = len(text) + sum(count * _COSTS[mark] for mark, count in marks.items())
    budget = current()
    try:
        budget.step(sum(marks.values()) // 8)
        budget.keep(cost, "its values")
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    return cost


def parsed_json(text: str, path: Location | str) -> Any:
    """The values of a JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{error.msg} at line {error.lineno} column {error.colno}"
        if conflict := _CONFLICT.search(text):
            where = f"a merge that was never resolved left {quoted(conflict[0])} in line {text.count(chr(10), 0, conflict.start()) + 1}"
        raise NotJSON(f"{path} is not JSON: {where}") from None
    except RecursionError:
        raise BadInput(f"{path} is nested too deeply to be a config", code="too-large") from None
    except ValueError:  # an integer of thousands of digits
        raise BadInput(f"{path} holds a number too long to be a size", code="too-large") from None


def read_toml(path: Location) -> dict[str, Any]:
    """A whole TOML file."""
    import tomllib

    text = read_text(path, LARGEST_TOML)
    try:
        dots = sum(line.count(".") ** 2 for line in text.splitlines())  # the library looks at each start of a long key
        current().step(dots // 20)
        current().keep(dots, "its keys")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not TOML: {error}", code="malformed") from None
    except RecursionError:
        raise BadInput(f"{path} is nested too deeply to be a config", code="too-large") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    except ValueError:  # an integer of thousands of digits
        raise BadInput(f"{path} holds a number too long to be a size", code="too-large") from None
