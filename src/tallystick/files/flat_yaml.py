"""Read flat YAML configs: one key and plain value per line; nested values become empty."""

from __future__ import annotations

import re
from typing import Any

from tallystick.core.budget import current
from tallystick.errors import BadInput, quoted
from tallystick.files.remote import Location
from tallystick.files.texts import read_text

LARGEST = 1_000_000  # most bytes of a config

_LINE = re.compile(r"([A-Za-z_][\w.-]*):(?:[ \t]+(.*))?")
_WORDS: dict[str, Any] = {"": {}, "null": None, "~": None, "true": True, "false": False}
_INTEGER, _NUMBER = re.compile(r"[+-]?\d{1,30}"), re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)(e[+-]?\d{1,3})?")


def read_flat_yaml(path: Location) -> dict[str, Any]:
    """Return the top-level keys of a YAML file with their plain values.

    Nested lists and mappings become empty mappings.

    Raises:
        BadInput: if a line is not valid in a flat config, or a key is repeated.
    """
    values: dict[str, Any] = {}
    for number, line in enumerate(read_text(path, LARGEST).splitlines(), 1):
        current().step(1)
        if not line.strip() or line[0] in " \t-#" or line.rstrip() in ("---", "...", "{}"):
            continue  # nested under the key above, or empty
        found = _LINE.fullmatch(line.rstrip())
        if found is None or found[1] in values:
            why = "a duplicate key" if found else "not `key: value`"
            raise BadInput(
                f"{path} is not a flat YAML config: line {number} is {why}: {quoted(line)}", code="malformed"
            )
        current().keep(200 + len(line), "its keys")
        values[found[1]] = _plain((found[2] or "").strip())
    return values


def _plain(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    text = re.sub(r"\s+#.*", "", text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text.lower()):
        return float(text)
    return {} if text[:1] in ("{", "[", "&", "|", ">") else text
