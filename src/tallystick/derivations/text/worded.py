"""Read what the words of a line say: settings, the size of a symbol, the count bytes are of."""

from __future__ import annotations

import re
from typing import NamedTuple

_SETTING = r"\s*[A-Za-z_]\w{0,30}\s?=\s?\d[\d.,_]{0,12}(?<![,.])\s?[KMBk]?\s*"
_LABEL_SETS = re.compile(
    rf"(?P<words>[^()=≈|:]{{0,200}}[^\W\d][^()=≈|:]{{0,60}})\((?P<sets>{_SETTING}(?:[,;]{_SETTING}){{0,8}})\)(?P<rest>\s*[:=≈].+)"
)
# "Total: ~2.4M params * 4 bytes = 9.5 MB"
_IN_BYTES = re.compile(
    r"(?P<words>[^=≈:|]{1,120})[:=≈]\s*(?P<count>[~≈]?\s?\d[\d.,]*\s?[KMB]?\s+(?:param\w*|weights))\s*\*\s*[\d.]+\s*(?:B|bytes?)\b"
)
# "hidden_size (H): 7168"
_SYMBOL = re.compile(
    r"(?P<words>[^()=:|]{0,60}(?:size|dim|width|length|len|layers|heads|vocab\w*|experts|rank|batch)[^()=:|]{0,20})\((?P<name>[A-Za-z]\w?)\)\W{0,3}[:=]\W{0,3}"
    r"(?P<size>\d[\d,]{0,8})(?![\d.,]*\d|\s?[*/+×])[^=≈]*",
    re.IGNORECASE,
)


class LabelSets(NamedTuple):
    """The settings in the label of a line, the label with and without them, and what follows."""

    settings: list[str]
    label: str
    words: str
    rest: str


def settings_in(text: str) -> LabelSets | None:
    """Return the settings in a label, if it has any: "Total (vocab=37K, d=512): ~100M"."""
    found = _LABEL_SETS.fullmatch(text) if "=" in text else None
    if found is None:
        return None
    settings = [setting.strip() for setting in re.split(r"[,;](?=\s*[A-Za-z_])", found["sets"])]
    return LabelSets(settings, f"{found['words']}({found['sets']})", found["words"].rstrip(), found["rest"])


def symbol_in(text: str) -> re.Match[str] | None:
    """Return the match of a line that gives a symbol its size: "├── hidden_size (H): 7168".

    Its groups are `words`, `name` and `size`.
    """
    return _SYMBOL.fullmatch(text) if "(" in text else None


def count_of_bytes(text: str) -> tuple[str, str] | None:
    """Return the label and count of a line that computes bytes: "Total: 2.4M params × 4 bytes"."""
    found = _IN_BYTES.match(text)
    return (found["words"], found["count"]) if found else None
