"""Find the options of an engine in what it logs at its start: the options that were given.

>>> words_of_log("non-default args: {'model': 'org/name', 'max_model_len': 8192, 'dtype': 'half'}")
['vllm', 'serve', 'org/name', '--max-model-len=8192', '--dtype=half']
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from tallystick.core.syntax import parsed

_GIVEN = re.compile(r"non-default args: (\{.*\})\s*$", re.MULTILINE)
_RELEASE = re.compile(r"(?:server version|engine \(v|version) ?(\d{1,4}\.\d{1,4}\.\d{1,4})")
MOST = 100_000  # characters of such a line


def words_of_log(text: str) -> list[str]:
    """Return the command line that a log of vLLM is of; nothing if the log does not say.

    Args:
        text: the log, or a part of it.
    """
    found = _GIVEN.search(text[:MOST])
    if found is None:
        return []
    try:
        given = ast.literal_eval(parsed(found[1], "eval"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    source = given.pop("model", None) or given.get("model_tag")
    given.pop("model_tag", None)
    return ["vllm", "serve", *([str(source)] if source else []), *_options(given)]


def version_of_log(text: str) -> str | None:
    """Return the version of vLLM that a log states."""
    found = _RELEASE.search(text[:MOST])
    return None if found is None else found[1]


def _options(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        option = str(name).replace("_", "-")
        if value is True:
            yield f"--{option}"
        elif value is False:
            yield f"--no-{option}"
        elif isinstance(value, dict):
            yield f"--{option}={json.dumps(value)}"
        elif isinstance(value, str | int | float):
            yield f"--{option}={value}"
