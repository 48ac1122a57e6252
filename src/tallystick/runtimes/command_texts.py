r"""Find the words of a command in a text that people keep it in: a script, a compose file.

>>> words_of("vllm serve org/name \\\n  -tp 2  # two cards")
['vllm', 'serve', 'org/name', '-tp', '2']
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_ITEM = re.compile(r"^\s*-\s+(?=\S)")  # of a YAML list
_KEY = re.compile(r"^\s*(?:-\s+)?([\w.-]{1,60}):(?=\s|$)")
_FOLDED = re.compile(r"^[>|][+-]?\d?$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_CONTINUED = re.compile(r"[\\`^]\s*$")  # of POSIX shells, PowerShell and cmd
_ASSIGNED = re.compile(r"^(?:export\s+|set\s+)?([A-Za-z_]\w{0,60})=(\S.*)$")
_VARIABLE = re.compile(r"\$(?:\{(\w{1,60})(?::?-([^}]*))?\}|(\w{1,60}))")
_PROMPT = re.compile(r"^\s*[$>]\s+(?=\S)")
_COMMANDS = ("command", "args", "entrypoint", "cmd")
_SETTING = "LLAMA_ARG_"  # of llama-server's environment
_RUNS = re.compile(
    r"\bvllm\s+serve\b|\bvllm\.entrypoints|\bsglang\.launch_server|\bsglang\s+serve\b|\bllama-(?:server|cli)\b"
)
_WINDOWS = re.compile(r"\b[A-Za-z]:\\|\.exe\b")
_JSON = re.compile(r"\{\s*[\"']")


def words_of(text: str) -> list[str]:
    """Return the words of the commands in a text, with the variables that it sets filled in.

    Args:
        text: a shell script, a line, YAML or a JSON list.
    """
    variables: dict[str, str] = {}
    settings: list[str] = []  # a container's environment and image, wherever the file has them
    images: list[str] = []
    words: list[str] = []
    inside = True  # what follows is a command: in YAML, under a key that has one
    for raw in _joined(text):
        key = _KEY.match(raw)
        line = raw
        if key is not None and not raw.lstrip("- \t").startswith("$"):
            name, line = key[1], raw[key.end() :].strip()
            inside = name.lower() in _COMMANDS or (_RUNS.search(line) is not None and name.lower() != "image")
            if name.lower() == "image" and line:
                images += _split(_filled(line, variables))
            if name.startswith(_SETTING) and line:
                settings.append(f"{name}={line.strip(chr(34))}")
        if _ITEM.sub("", line).startswith(_SETTING):
            settings += _split(_ITEM.sub("", line))
        if inside and not _FOLDED.match(line.strip()):
            words += _of_line(_ITEM.sub("", _PROMPT.sub("", line)).strip(), variables)
    return [*settings, *images, *words]


def _of_line(line: str, variables: dict[str, str]) -> list[str]:
    """Return a line's words, and note a variable that it sets."""
    parts = _split(_filled(line, variables))
    assigned = _ASSIGNED.match(line)
    if assigned is not None and len(parts) == 1 + line.startswith(("export ", "set ")):
        variables[assigned[1]] = parts[-1].partition("=")[2]
    return parts


def _joined(text: str) -> list[str]:
    """Return the lines without comments, and with continued ones joined."""
    lines: list[str] = []
    begun = ""
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw)
        if _CONTINUED.search(line):
            begun += _CONTINUED.sub(" ", line)
            continue
        lines.append(begun + line)
        begun = ""
    return [line for line in (*lines, begun) if line.strip()]


def _filled(line: str, variables: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        return variables.get(name, match[2] if match[2] is not None else match[0])

    return _VARIABLE.sub(value, line)


def _split(line: str) -> list[str]:
    if line.startswith("["):  # a list of JSON or YAML
        line = re.sub(r"([\"'])\s*,\s*(?=[\"'])", r"\1 ", line.strip("[], "))
    return list(_pieces(_shell(line)))


def _shell(line: str) -> list[str]:
    if _WINDOWS.search(line):  # there, a backslash is a plain character
        line = line.replace("\\", "\\\\")
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _pieces(parts: list[str]) -> Iterator[str]:
    """Yield the words; a quoted command, or an item such as "--model org/name", is several."""
    for part in parts:
        several = " " in part and not _JSON.search(part) and (part.startswith("-") or _RUNS.search(part))
        yield from _shell(part) if several else [part]
