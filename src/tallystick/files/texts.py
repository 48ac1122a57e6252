"""Read whole text files as UTF-8, JSON or TOML, within the budget of their source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallystick.core.budget import current, one_source
from tallystick.errors import BadInput, quoted
from tallystick.files.local import open_regular, refuse_pointer
from tallystick.files.remote import Location

# Most bytes of a config or an index, written by a program; the largest real index is under 20 MB.
LARGEST_JSON = 100_000_000
LARGEST_TOML = 1_000_000  # bytes: a config that people write

# Most bytes that Python takes for each list, object, string, member and comma of a JSON text.
_COSTS = {"[": 88, "{": 80, '"': 32, ":": 120, ",": 44}
_WIDTHS = (
    (re.compile(rb"[\xf0-\xff]"), 4),
    (re.compile(rb"[\xc4-\xef]"), 2),
)  # byte pattern -> bytes per character of a Python string that contains it

# Markers that git writes into a file that it could not merge.
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: .{0,60}|$)", re.MULTILINE)


class NotJSON(BadInput):
    """A text that is not JSON; it may be another format."""

    code = "malformed"


def read_bytes(path: Location, most: int = LARGEST_JSON) -> bytes:
    """Return the bytes of a whole text file.

    Raises:
        BadInput: if it has more than `most` bytes, is a Git LFS pointer, or cannot be opened.
    """
    file, size = open_regular(path)
    with file:
        if size > most:
            raise BadInput(f"{path} has {size:,} bytes: too large for a config or an index", code="too-large")
        content = file.read(size)
    refuse_pointer(path, content)
    return content


def read_text(path: Location, most: int = LARGEST_JSON) -> str:
    """Return the text of a whole file as UTF-8.

    Raises:
        BadInput: as for `read_bytes`, and if it is not UTF-8.
    """
    content = read_bytes(path, most)
    budget, width = current(), next((width for widest, width in _WIDTHS if widest.search(content)), 1)
    try:
        budget.read(len(content))
        budget.keep(len(content) * width, "its text")
        budget.keep(-len(content) * width, "its text")  # the text is not kept for long
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text: byte {error.start} is not UTF-8", code="malformed") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None


def read_json(path: Location) -> Any:
    """Return the values of a whole JSON file; they count against the budget of the source.

    Raises:
        NotJSON: if it is not JSON.
        BadInput: if it cannot be read within the budget.
    """
    text = read_text(path)
    keep_json(text, path)
    return parsed_json(text, path)


@contextmanager
def json_within(path: Location) -> Iterator[Any]:
    """Yield the values of a whole JSON file, and release their budget afterwards."""
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
    """Take the memory of a JSON text's values from the budget of the source.

    Args:
        text: the JSON text.
        path: its file, for messages.

    Returns:
        The bytes taken.

    Raises:
        BadInput: if the budget has fewer bytes.
    """
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
    """Return the values of a JSON text.

    Raises:
        NotJSON: if it is not JSON.
        BadInput: if it is nested too deeply, or holds a number that is too long.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{error.msg} at line {error.lineno} column {error.colno}"
        if conflict := _CONFLICT.search(text):
            where = (
                f"unresolved merge conflict {quoted(conflict[0])} in line"
                f" {text.count(chr(10), 0, conflict.start()) + 1}"
            )
        raise NotJSON(f"{path} is not JSON: {where}") from None
    except RecursionError:
        raise BadInput(f"{path} is nested too deeply to be a config", code="too-large") from None
    except ValueError:  # an integer of thousands of digits
        raise BadInput(f"{path} holds a number too long to be a size", code="too-large") from None


def read_toml(path: Location) -> dict[str, Any]:
    """Return the values of a whole TOML file.

    Raises:
        BadInput: if it is not TOML, or cannot be read within the budget.
    """
    import tomllib

    text = read_text(path, LARGEST_TOML)
    try:
        dots = sum(line.count(".") ** 2 for line in text.splitlines())  # tomllib rescans every prefix of a dotted key
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
