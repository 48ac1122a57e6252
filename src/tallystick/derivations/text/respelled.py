"""Rewrite the text of a line before its tokens are read: arrows, columns, biases in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

NEAR_BIAS = 2  # a product and a bias that give a number miss it by less than half
NEAR_ROUNDING = 20  # a rounding misses its number by less than 1/20
_BETWEEN = re.compile(r"(?<=[^\W\d])\s+[x×]\s+(?=\d)")
_SAID = re.compile(
    r"(?P<said>[^()=≈]{0,300}\d[^()=≈]{0,60}\(\d[^()=≈]{0,200}\s[*x×]\s?[≈~]?\d[^()=≈]{0,200}\))\s*(?:[;,.]\s?.*)?"
)
_NUMBER = r"[≈~]?\s?\d[\d.,]{0,15}\s?[KMB]?"
_RESULT = re.compile(rf"\((?:(?P<product>[^()=≈]{{1,80}})[=≈]\s*|[≈~]\s?)?(?P<result>{_NUMBER})\s?\)")
_ADDENDS = re.compile(r"(?P<addends>(?:\d[\d.,]{0,15}\s?[KMB]?\s\+\s){1,8})[^\d=≈+()]{0,60}\Z")  # before the first
_PLUS = re.compile(r"\s*\+\s*[^\d=≈+]{0,60}")
_STATED = re.compile(rf"\s*[=≈]\s*{_NUMBER}(?!\d)[^=≈\d]*")
_ROUGH = re.compile(r"(?<=\s\s)~(?=\d)")  # "Total   ~860 GB   ~46 GB" has columns
_IN_MEMORY = re.compile(r"\d[KMB]?\s\s+~\d[\d.,]*\s?[KMGT]i?B\b")  # "Total   68,170,240   ~133 MB"


def _added(products: re.Match[str]) -> str:
    """Return products in a row, each with its name, as a sum."""
    return products[0].replace("),", ") +")


def _without_product(shape: re.Match[str]) -> str:
    """Return what stands before a size and the size, without the product that computes it."""
    right = int(shape["one"]) * int(shape["other"]) == int(shape["size"])
    return f"{shape['head']}{shape['size']}" if right else shape[0]


def _without_dash(remark: re.Match[str]) -> str:
    """Return a number with the remark behind its dash, unless that is a number to subtract."""
    if remark["rounded"] is not None:
        number, rounded = int(remark["number"].replace(",", "")), float(remark["rounded"].rstrip("."))
        if abs(rounded * 1000 ** (1 + "KMB".index(remark["letter"])) - number) * NEAR_ROUNDING > number:
            return remark[0]
        return f"{remark['number']} ≈ {remark['rest']}"
    return f"{remark['number']}, {remark['rest']}"


def _with_bias(product: re.Match[str]) -> str:
    """Return a product with its bias as a number: the size that its result has more, or near it."""
    one, other, value = (int(product[name].replace(",", "")) for name in ("one", "other", "value"))
    more, whole = value - one * other, not product["value"].endswith("000")
    near = whole and abs(more) * NEAR_BIAS < value
    size = more if more in (one, other) else other if near and more else 0
    return f"{product['one']} * {product['other']} + {size}" if size else product[0]


def _without_qualifier(addend: re.Match[str]) -> str:
    """Return nothing for what is said of an addend, unless that computes another number."""
    if addend["one"] is None:
        return ""
    one, other, value = (int(re.sub(r"\D", "", addend[name])) for name in ("one", "other", "value"))
    return "" if one * other == value else addend[0]


_QUALIFIED = re.compile(
    r"(?:(?<=[^\W\d]\s)\(\s?(?:\d{1,3}\s?[^\W\d_]{1,14}|\d[\d.]{0,5}\s?%|(?P<one>\d[\d,.]{0,9})\s?[*×x]\s?(?P<other>\d[\d,.]{0,9}))\s?\)"
    r"|(?<![\d,.])\d{1,3}\s?(?:层|層|층|レイヤー|ブロック|레이어|블록))\s+(?=(?P<value>\d[\d,.]{0,20})\s?(?:[KMB万萬만亿億억]\s?)?[+=≈(])"
)
_TO = re.compile(
    r"\A(?P<words>\W*(?:\d{1,3}\s)?[^\W\d][^\d=≈→:|>]*?)\s*(?:→|[-=]{1,2}>)\s*(?P<value>[≈~]?\s?\d[^=≈→:|>]*)\Z"
)
_FROM = re.compile(
    r"\A(?P<words>[^=≈←\d]*[:|]\s*)(?P<value>[≈~]?\s?\d[\d.,_]*\s?\w{0,2})\s*(?:←|<-)\s*(?P<product>\d[^=≈()←]*\*[^=≈()←]*\d)(?P<rest>(?:\D[^=≈]*)?)\Z"
)
_BIASED = re.compile(
    r"(?<![\d.,*+/^-])(?<![*+/^-] )(?P<one>\d[\d,]{0,9})\s*\*\s*(?P<other>\d[\d,]{0,9})\s*\+\s*(?:bias(?:es)?|偏置)(?=\s*=\s*(?P<value>\d[\d,]{3,14})(?![\d.]))"
)

_COMPUTED = re.compile(
    r"\A(?P<product>(?![^→>]*\b[Ff]rom\b)[^=≈→>|]*\d[\d.,]*\s?[KMB]?[^=≈→>|\d]*\s[+*x×-]\s[^=≈→>|]*\d[^=≈→>|+*\d]*?)\s*(?:→|[-=]{1,2}>)\s*"
    r"(?P<value>[≈~]?\s?(?:\d[\d.]*\s?[KMB]|\d{1,3}(?:[,. ]\d{3})+|\d{6,12})(?:\s(?:param\w*|total|in total))?[\s.]*)\Z"
)
_SHAPE = r"\[\s?\d{1,7}(?:\s?[,×*]\s?\d{1,7}){0,3}\s?\]"

# What is rewritten: a mark without which no text matches, the pattern, and the new text.
_REWRITES: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # "28 layers → 8,852,938,752", "final norm → 3072", but no "768 → 3072"
    ("→", _TO, r"\g<words>: \g<value>"),
    (">", _TO, r"\g<words>: \g<value>"),
    # "activations: 200 MB ← 8 × 256 × 512 × 2 (fp16)"
    ("←", _FROM, r"\g<words>\g<product> = \g<value> \g<rest>"),
    ("<-", _FROM, r"\g<words>\g<product> = \g<value> \g<rest>"),
    # "q(512 * 512), k(512 * 256), proj(512 * 512) = 655K" adds them
    (
        "(",
        re.compile(
            r"[^\W\d]\w{0,30}\s?\(\d[\d,]{0,9}\s?\*\s?\d[\d,]{0,9}\)(?:,\s?[^\W\d]\w{0,30}\s?\(\d[\d,]{0,9}\s?\*\s?\d[\d,]{0,9}\)){1,8}(?=\s*[=≈])"
        ),
        _added,
    ),
    # "12 × Block (7,087,872 each, 85,054,464 in all)"
    (
        "each",
        re.compile(
            r"(?P<count>\d{1,3})\s?[*×x]\s(?P<words>[^\W\d][^()=≈:]{0,60}?)\s?\((?P<each>\d[\d.,]{0,15}\s?[KMB]?)\s(?:params\s)?each[,;]\s"
            r"(?P<all>[≈~]?\d[\d.,]{0,15}\s?[KMB]?)\s(?:in all|in total|total|altogether)\)"
        ),
        r"\g<words>: \g<count> * \g<each> = \g<all>",
    ),
    # "12 x Block: 85,054,464 (7,087,872 each)"
    (
        "(",
        re.compile(
            r"(?P<count>\d{1,3})\s?[*×x]\s(?P<words>[^\W\d][^()=≈:]{0,60}?)\s?:\s*(?P<all>[≈~]?\d[\d.,]{0,15}\s?[KMB]?)(?P<unit>\sparam\w+)?\s?(?:\([≈~]?\d[\d.,]{0,9}\s?[KMB]\)\s)?"
            r"\((?P<each>[≈~]?\d[\d.,]{0,15}\s?[KMB]?)\s(?:params\s)?(?:each|per\s(?:layer|block))\)"
        ),
        r"\g<words>: \g<count> * \g<each> = \g<all>\g<unit>",
    ),
    # "Embedding (V * d = 50257 * 768): 38,597,376", "Embedding [V * d = 50257 * 768]: 38,597,376"
    *(
        (
            f"{close}:",
            re.compile(
                rf"{re.escape(begin)}(?:[^()\[\]=≈:]|\([^()=≈:]*\)){{1,60}}=\s*(?P<numbers>\d(?:[^()\[\]=≈:]|\([^()=≈:]*\)){{1,120}})"
                rf"{re.escape(close)}\s*:(?=\s*[≈~]?\s?\d)"
            ),
            lambda formula: f"({formula['numbers']}):" if "*" in formula["numbers"] else formula[0],
        )
        for begin, close in ("()", "[]")
    ),
    # "Words [1024 × 384]: 393,216"
    ("]:", re.compile(r"\[(\d[\d,]{0,9}(?:\s?[*x×]\s?\d[\d,]{0,9}){1,3})\]\s*:(?=\s*[≈~]?\s?\d)"), r"(\1):"),
    # "W_Q: [1280, 1280] + b_Q: [1280] = 1,639,680"
    (
        "]",
        re.compile(rf"{_SHAPE}(?:\s?\+\s?(?:[^\W\d]\w{{0,30}}:?\s?)?{_SHAPE}){{1,5}}(?=\s*[=≈])"),
        lambda shapes: " + ".join(" * ".join(re.findall(r"\d+", one)) for one in re.findall(_SHAPE, shapes[0])),
    ),
    # "135,266,304 parameters (≈ 135.3M)", "7,087,872 (~7.1M parameters)"
    (
        "(",
        re.compile(
            r"(?P<number>\d(?:[,._ ]?\d){3,30})\s+(?P<unit>(?:param(?:eter)?s|weights)\s+)?(?P<rounded>\([≈~]?\s?\d[\d.,]{0,9}\s?(?:[KMBT]|[mb]illion|[MB]illion))"
            r"(?P<inside>\s(?:param(?:eter)?s|weights))?\)(?(unit)|(?(inside)|(?!)))"
        ),
        r"\g<number> \g<rounded>) \g<unit>\g<inside>",
    ),
    # "q_proj: (1152 -> 16 * 72 = 1152)"
    (
        "(",
        re.compile(
            r"(?P<head>\(\s?\d{1,7}\s?(?:→|->|,)\s?)(?P<one>\d{1,5})\s?\*\s?(?P<other>\d{1,5})\s?=\s?(?P<size>\d{1,7})(?=\s?\)\s*(?:→|[-─=]>|[=:])\s*\d)"
        ),
        _without_product,
    ),
    # "12 × (9.0 + 9 + 9) MB = 324 MB"
    ("B", re.compile(r"(\(\s?\d[\d\s.,]*(?:[+*/-]\s?\d[\d\s.,]*){1,9}\))\s?(?=[KMGT]i?B\b)"), r"\1 * 1 "),
    # "d_model d = 64" of a table of symbols
    ("_", re.compile(r"^(\s*(?:[-*•]\s)?)[a-z]+(?:_[a-z]+)+\s+(?=[A-Za-z](?:_\w{1,5})?\s?=\s?[\w(])"), r"\1"),
    # "#define FFN_DIM (4 * N_EMBD)  // 3072" of C
    ("define ", re.compile(r"^\s*#?\s*define\s+([A-Za-z]\w{0,40})\s+(?=[\d(])"), r"\1 = "),
    # "768 × (12 × 64 = 768)", but no "4096 × (8 × 128 = 1034)"
    (
        "(",
        re.compile(
            r"(?P<head>(?P<times>(?<![^\W\d])[*×x]\s?)?)\((?P<one>\d{1,7})\s?[*×x]\s?(?P<other>\d{1,7})\s?=\s?(?P<size>\d{1,7})\)(?(times)|(?=\s?[*×x]\s?\d))"
        ),
        _without_product,
    ),
    # "(a) 49,536 · (b) 198,272"
    ("(", re.compile(r"(?<=\d)\s\*\s(?=\([a-h]\)\s)"), ", "),
    # The label of an addend: "32 layers: 46,439,333,888 + head (32000 × 4096): 131,072,000 = …"
    (":", re.compile(r"(?<=\d)\s*\+\s+[^\W\d][^:=≈+]{0,80}:\s*(?=\d[\d,._]*\s*[=≈+])"), " + "),
    # "8,508,230,400 / 1024 KB = 8,308,818.75 KB"
    (
        "/",
        re.compile(r"(/\s?(?:1024|1000)(?:\^[23])?)\s?(?P<unit>[KMG]i?B)(\s*[=≈]\s*[≈~]?\s?\d[\d.,]*)\s?(?P=unit)\b"),
        r"\1\3",
    ),
    # "D = 1536  heads = 24"
    ("=", re.compile(r"(=\s?\d[\d.,]{0,12}[KMB]?)\s{2,}(?=[A-Za-z_]\w{0,20}\s?=\s?\d)"), r"\1, "),
    # "train.py --max_iters=50000"
    ("--", re.compile(r"(?<![\w-])--(?=[A-Za-z][\w-]{0,30}=)"), " "),
    # "\\mathbb{R}^{4 × 64} = 256 parameters" has a shape
    (
        "R",
        re.compile(r"(?:\\mathbb\s?\{R\}|\u211d)\s?\^\((?P<shape>\d[\d\s*×,]{0,40})\)(?=\s*[=≈]\s?\d)"),
        r"\g<shape>",
    ),
    # "total_steps: int = 100000"
    (": ", re.compile(r"^(\s*[A-Za-z_]\w{0,40}): (?:int|float)\s?(?==)"), r"\1 "),
    # "384 × 1536 + bias = 591,360"
    ("bias", _BIASED, _with_bias),
    ("偏置", _BIASED, _with_bias),
    # "Value (640 × 640):   = 409,600"
    ("):", re.compile(r"(?<=\d\)):\s{0,80}=\s*(?=[≈~]?\s?\d[^=≈]*$)"), " = "),
    # "total   6,738,415,616  68,976,648,192 +62,238,232,576" has a column of changes
    (" +", re.compile(r"(?<=\d)(\s{2,}\d[\d,.]{0,20}[KMB]?)\s\+(?=\d[\d,.]{0,20}[KMB]?\s*$)"), r"\1  +"),
    # "786,432 - i.e. 0.79M", "85,054,464 – 68.4% of the model", "38,597,376 - 38.6M"
    (
        " ",
        re.compile(
            r"(?P<number>(?<![\w.,])\d{1,3}(?:,\d{3})+|(?<![\w.,])\d{4,12})\s[-\u2013\u2014]\s"
            r"(?P<rest>(?:i\.e\.|about|roughly|approx|that is|[≈~])|\d[\d.]{0,6}\s?%|(?P<rounded>\d[\d.]{0,6})\s?(?P<letter>[KMB])(?=[\s.;)]*$))"
        ),
        _without_dash,
    ),
    # "in total 124,439,808, i.e. ≈124.4M"
    ("i.e.", re.compile(r"(?<=\d),?\s+i\.e\.,?\s+[≈~]?\s?(?=\d[\d.]{0,6}\s?[KMB]\b)"), " ≈ "),
    # "N_total ≈ 1.56 × 10^9 (exact: 1,557,611,200)"
    (
        "exact",
        re.compile(
            r"(?P<about>[≈~]\s?\d[\d.]{0,6}\s?(?:\*\s?10\^\d{1,2}|[KMB]))\s\(exact(?:ly)?:?\s(?P<number>\d[\d,]{3,20})\)"
        ),
        r"= \g<number> \g<about>",
    ),
    # "38,597,376(约 3860万)", "124,439,808(124M)", "85,054,464(12层)"
    (
        "(",
        re.compile(
            r"(?<=\d{3})\((?=\s?(?:约|約|약|≈|~|about|approx\.?|ca\.)\s?\d|\d[\d.,]{0,9}\s?(?:[KMBT]|[百千]?[万億亿]|만|억)\s?\)|\d{1,3}\s?[^\W\d_]{1,14}\))"
        ),
        " (",
    ),
    # "50,257 tokens × 1,600 dimensions -> 80.4M"
    (
        "*",
        re.compile(
            r"(\d[\d,]{0,9})(?:\s[^\W\d]{2,14}){1,2}\s?\*\s?(\d[\d,]{0,9})(?:\s[^\W\d]{2,14}){1,2}\s*(?=(?:→|[-─=]>)\s*[≈~]?\d)"
        ),
        r"\1 * \2 ",
    ),
    # "encoder (6 layers) 18,881,280 + wte (50257 × 768) 38,597,376 + 12层 85,054,464 = …"
    ("+", _QUALIFIED, _without_qualifier),
    # "39.4M + 85.1M -> 124.5M", "12 × 7.09M → 85.1M"
    *((arrow, _COMPUTED, r"\g<product> = \g<value>") for arrow in ("→", ">")),
    # "q 2048 × 2048 = 4,194,304; k 2048 × 256 = 524,288 → 4,718,592"
    (
        "→",
        re.compile(
            r"\A(?P<list>[^=→|]*\d[^=→|]*=[^=→|]*(?:[;,][^=→|]*\d[^=→|]*=[^=→|]*){1,12})→\s*(?P<value>[≈~]?\s?(?:\d[\d.]*\s?[KMB]|\d{1,3}(?:,\d{3})+))[\s.]*\Z"
        ),
        r"\g<list>; total: \g<value>",
    ),
    # "emb = 39.4M / attn = 28.3M / total = 67.7M"
    (
        " / ",
        re.compile(
            r"\A[^=/]{0,40}=\s?[≈~]?\d[\d.,]*\s?[KMB]?(?:\s/\s[^\W\d]\w*\s?=\s?[≈~]?\d[\d.,]*\s?[KMB]?){2,9}\s*\Z"
        ),
        lambda parts: parts[0].replace(" / ", ", "),
    ),
    # "12 blocks of 7.09M = 85.1M"
    (
        " of ",
        re.compile(
            r"(?P<count>(?<![\w.,])\d{1,3}\s(?:[^\W\d_]{1,14}\s)?(?:layers|blocks|experts)) of (?=[≈~]?\d[\d.,]{0,14}(?:(?<=,\d{3})|\s?[KMB])\s?[=≈])"
        ),
        r"\g<count> * ",
    ),
    # "emb 39.38M | attn 28.35M | mlp 56.67M | total 124.44M"
    (
        " | ",
        re.compile(
            r"\A[^|]*[^\W\d][^|\d]*[≈~]?\d[\d.,]*\s?[KMB]?\s(?:\| [^|\d]*[^\W\d][^|\d]*[≈~]?\d[\d.,]*\s?[KMB]?\s?){2,12}\Z"
        ),
        lambda parts: parts[0].replace(" |", ","),
    ),
    # "28 x Block:  -> 427,392,000"
    (":", re.compile(r":\s*(?:→|[-─=]>)\s*(?=[≈~]?\s?\d[^→>:=]*$)"), ": "),
)


def as_equation(text: str) -> str:
    """Return a text with its result behind a colon or "=", and a rounding behind its number.

    Examples: "28 layers → 8.85B", "200 MB ← 8 × 25 MB", "7,077,888 parameters (7.1M)".
    """
    for mark, pattern, replacement in _REWRITES:
        if mark in text:
            text = pattern.sub(replacement, text)
    columns = "~" in text and "|" not in text and "=" not in text
    columns = columns and (len(_ROUGH.findall(text)) > 1 or _IN_MEMORY.search(text) is not None)
    return _ROUGH.sub(" ", text) if columns else text


def sum_of_results(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the sum of results in parentheses that a text ends in, and each product; or "".

    Example: "67M + 135M ≈ 202M" of "attention (4 × 4096² ≈ 67M) + MLP (3 × 4096 × 11008 ≈ 135M) ≈
    202M".
    """
    found = list(_RESULT.finditer(text))
    between = (text[one.end() : other.start()] for one, other in pairwise(found))
    stated = _STATED.fullmatch(text, found[-1].end()) if len(found) > 1 else None
    if stated is None or not all(map(_PLUS.fullmatch, between)):
        return "", []
    before = _ADDENDS.search(text, 0, found[0].start())
    first = before["addends"] if before is not None else ""
    return f"{first}{' + '.join(one['result'] for one in found)} {stated[0]}", [
        (one["product"], one["result"]) for one in found if (one["product"] or "").strip()
    ]


def up_to_product(text: str) -> str:
    """Return a text without the sentence that follows a number and its product in parentheses.

    Example: "about 381 MB (190,461,696 parameters x 2 bytes); the file has more".
    """
    said = _SAID.fullmatch(text)
    return text if said is None else _BETWEEN.sub(" * ", said["said"])
