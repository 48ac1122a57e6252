"""Rewrite the text of a line before its tokens are read: arrows, columns, settings in a label."""

from __future__ import annotations

import re
from typing import NamedTuple

NEAR_BIAS = 2  # a product and a bias that give a number miss it by less than half
_BETWEEN = re.compile(r"(?<=[^\W\d])\s+[x×]\s+(?=\d)")
_SAID = re.compile(
    r"(?P<said>[^()=≈]{0,300}\d[^()=≈]{0,60}\(\d[^()=≈]{0,200}\s[*x×]\s?[≈~]?\d[^()=≈]{0,200}\))\s*(?:[;,.]\s?.*)?"
)
_ROUGH = re.compile(r"(?<=\s\s)~(?=\d)")  # "Total   ~860 GB   ~46 GB" has columns
_IN_MEMORY = re.compile(r"\d[KMB]?\s\s+~\d[\d.,]*\s?[KMGT]i?B\b")  # "Total   68,170,240   ~133 MB"
# "28 layers → 8,852,938,752", "final norm → 3072", but no "768 → 3072"
_RESULT = re.compile(r"(?P<words>\W*(?:\d{1,3}\s)?[^\W\d][^\d=≈→:|]*?)\s*→\s*(?P<value>[≈~]?\s?\d[^=≈→:|]*)")
# "activations: 200 MB ← 8 × 256 × 512 × 2 (fp16)"
_FROM = re.compile(
    r"(?P<words>[^=≈←\d]*[:|]\s*)(?P<value>[≈~]?\s?\d[\d.,_]*\s?\w{0,2})\s*(?:←|<-)\s*(?P<product>\d[^=≈()←]*\*[^=≈()←]*\d)(?P<rest>(?:\D[^=≈]*)?)"
)
# "135,266,304 parameters (≈ 135.3M)"
_ROUNDED = re.compile(
    r"(?P<number>\d(?:[,._ ]?\d){3,30})\s+(?P<unit>param(?:eter)?s|weights)\s+(?P<rounded>\([≈~]?\s?\d[\d.,]{0,9}\s?(?:[KMBT]|[mb]illion|[MB]illion)\))"
)
# "q(512 * 512), k(512 * 256), proj(512 * 512) = 655K" adds them
_PRODUCTS = re.compile(
    r"[^\W\d]\w{0,30}\s?\(\d[\d,]{0,9}\s?\*\s?\d[\d,]{0,9}\)(?:,\s?[^\W\d]\w{0,30}\s?\(\d[\d,]{0,9}\s?\*\s?\d[\d,]{0,9}\)){1,8}(?=\s*[=≈])"
)
# "q_proj: (1152 -> 16 * 72 = 1152)" and "28 x Block:  -> 427,392,000"
_COMPUTED = re.compile(
    r"(?P<head>\(\s?\d{1,7}\s?(?:→|->|,)\s?)(?P<one>\d{1,5})\s?\*\s?(?P<other>\d{1,5})\s?=\s?(?P<size>\d{1,7})(?=\s?\)\s*(?:→|[-─=]>|[=:])\s*\d)"
)
_ARROW = re.compile(r":\s*(?:→|[-─=]>)\s*(?=[≈~]?\s?\d[^→>:=]*$)")
# "384 × 1536 + bias = 591,360"
_BIASED = re.compile(
    r"(?<![\d.,*+/^-])(?<![*+/^-] )(?P<one>\d[\d,]{0,9})\s*\*\s*(?P<other>\d[\d,]{0,9})\s*\+\s*(?:bias(?:es)?|偏置)(?=\s*=\s*(?P<value>\d[\d,]{3,14})(?![\d.]))"
)
# The label of an addend: "32 layers: 46,439,333,888 + head (32000 × 4096): 131,072,000 = …"
_ADDEND = re.compile(r"(?<=\d)\s*\+\s+[^\W\d][^:=≈+]{0,80}:\s*(?=\d[\d,._]*\s*[=≈+])")
_LETTERED = re.compile(r"(?<=\d)\s\*\s(?=\([a-h]\)\s)")  # "(a) 49,536 · (b) 198,272"
_SETTINGS = re.compile(r"(=\s?\d[\d.,]{0,12}[KMB]?)\s{2,}(?=[A-Za-z_]\w{0,20}\s?=\s?\d)")  # "D = 1536  heads = 24"
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


def as_equation(text: str) -> str:
    """Return a text with its result behind a colon or "=", and a rounding behind its number.

    Examples: "28 layers → 8.85B", "200 MB ← 8 × 25 MB", "7,077,888 parameters (7.1M)".
    """
    if "→" in text and (arrow := _RESULT.fullmatch(text)):
        text = f"{arrow['words']}: {arrow['value']}"
    if ("←" in text or "<-" in text) and (arrow := _FROM.fullmatch(text)):
        text = f"{arrow['words']}{arrow['product']} = {arrow['value']} {arrow['rest']}"
    if "(" in text:
        text = _PRODUCTS.sub(lambda products: products[0].replace("),", ") +"), text)
        text = _ROUNDED.sub(r"\g<number> \g<rounded> \g<unit>", text)
        text = _COMPUTED.sub(_without_product, text)
        text = _LETTERED.sub(", ", text)
    if "=" in text:
        text = _SETTINGS.sub(r"\1, ", _ADDEND.sub(" + ", text) if ":" in text else text)
    if "bias" in text or "偏置" in text:
        text = _BIASED.sub(_with_bias, text)
    if ":" in text and ("→" in text or ">" in text):
        text = _ARROW.sub(": ", text)
    columns = "~" in text and "|" not in text and "=" not in text
    columns = columns and (len(_ROUGH.findall(text)) > 1 or _IN_MEMORY.search(text) is not None)
    return _ROUGH.sub(" ", text) if columns else text


def _without_product(shape: re.Match[str]) -> str:
    """Return the begin of a shape whose second size is computed in it, with only the size."""
    right = int(shape["one"]) * int(shape["other"]) == int(shape["size"])
    return f"{shape['head']}{shape['size']}" if right else shape[0]


def _with_bias(product: re.Match[str]) -> str:
    """Return a product with its bias as a number: the size that its result has more, or near it."""
    one, other, value = (int(product[name].replace(",", "")) for name in ("one", "other", "value"))
    more, whole = value - one * other, not product["value"].endswith("000")
    near = whole and abs(more) * NEAR_BIAS < value
    size = more if more in (one, other) else other if near and more else 0
    return f"{product['one']} * {product['other']} + {size}" if size else product[0]


def up_to_product(text: str) -> str:
    """Return a text without the sentence that follows a number and its product in parentheses.

    Example: "about 381 MB (190,461,696 parameters x 2 bytes); the file has more".
    """
    said = _SAID.fullmatch(text)
    return text if said is None else _BETWEEN.sub(" * ", said["said"])


def count_of_bytes(text: str) -> tuple[str, str] | None:
    """Return the label and count of a line that computes bytes: "Total: 2.4M params × 4 bytes"."""
    found = _IN_BYTES.match(text)
    return (found["words"], found["count"]) if found else None
