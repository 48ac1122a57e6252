"""Read the shape of a weight as the product of its sizes: "(768, 3072)", "nn.Linear(768, 3072)"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.derivations.arithmetic import Number, Operation, alone, evaluate
from tallystick.derivations.expressions.parser import prefix, suffix
from tallystick.derivations.expressions.tokens import Token, tokens
from tallystick.derivations.reading import LEAST_SUM
from tallystick.derivations.slips import is_typed_for

LONGEST = 1_000  # characters of a line; a longer one is prose
LEAST_TYPED = 1_000  # shorter numbers are one digit apart by chance

_TO = r"(?:,|→|[-=]+>)"  # (768, 3072), Linear(768 → 3072)
_SHAPE = re.compile(rf"[(\[]\s*(\d+\s*(?:{_TO}\s*\d+\s*)*,?)\s*[)\]](?=\s*(?:[-+*/x×]|$))")  # also (768,)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")  # "(6, 1,536)" has two sizes
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_ONLY = re.compile(rf"(?:\d{{1,4}}\s*[*x×]\s*)?[(\[]\s*\d{{1,7}}(?:\s*{_TO}\s*\d{{1,7}})+\s*[)\]]")
# "W_K: (4096, 128) → 524,288", "nn.Linear(768, 768, bias=False)  # 589,824 params"
_BEFORE = re.compile(
    rf"(?P<words>.*?)[(\[]\s*(?P<sizes>\d{{1,7}}(?:\s*(?:\*|{_TO})\s*\d{{1,7}})*),?(?P<bare>\s*,\s*bias\s*=\s*False)?(?:\s*,\s*bias\s*=\s*True)?"
    r"\s*[)\]]{1,2}\s*(?P<sign>→|[-=]+>|[=:#|]|//|\s)\s*\[?(?P<value>[≈~]?\s?\d[^=≈→#\]]*)\]?\s*(?:#.*)?"
)

_ADDED = re.compile(r"\d\s*[)\]]\s*\+$")
# "W_K: 4096 * 128 → 524,288"
_POINTED = re.compile(
    r"(?P<words>(?:[^=≈→>:]{0,80}(?:→|->)[^=≈→>:]{0,80}:)?[^=≈→>]*?(?<![\d.,*+/^(-] )(?<![\w.,*+/^(-]))(?P<product>\(?\d[\d\s,_.KM*x+^()]{0,200}[*x+][\d\s,_.KM*x+^()]{0,200}[\dKM)])\s*(?:→|[-=]+>)"
    r"\s*(?P<value>[≈~]?\s?\d[^=≈→#>]*)"
)


def product_to(text: str) -> re.Match[str] | None:
    """Return the match of a line with a product, an arrow and a number, or None.

    Its groups are `words`, `product` and `value`.
    """
    return _POINTED.fullmatch(text) if len(text) <= LONGEST else None


def shape_before(text: str) -> re.Match[str] | None:
    """Return the match of a line that ends in a shape and a number, or None.

    Its groups are `words`, `sizes`, `bare` (without a bias), `sign` and `value`.
    """
    return _BEFORE.fullmatch(text) if len(text) <= LONGEST else None


def product_before(match: re.Match[str], number: Number) -> Operation | None:
    """Return the product of the shape before a number if it is that, but for a digit, else None.

    Args:
        match: of `shape_before`.
        number: the number behind the shape.
    """
    words = match["words"].rstrip("([ ")
    # "384 × (3 × 384) = 442,368", but "head.weight + bias (1000, 256) + (1000) 257,000"
    equation = words.endswith(("+", "-", "*", "/", "^", "=")) and not _ADDED.search(words)
    equation = equation or match["words"][-1:].isdigit()  # "2(1,600) = 3,200"
    equation = equation or ("+" in words and _GROUPED.fullmatch(match["sizes"]) is not None)  # "+ LN_f (1,536) = "
    small = number.value < LEAST_SUM and not words.endswith("Size")  # "torch.Size([768]) 768"
    if small or equation or ("*" in match["sizes"] and match["sign"] in "=:"):
        return None
    sizes = re.sub(rf"\s*(?:\*|{_TO})\s*", ", ", _without_thousands(match["sizes"]))
    return product_of(f"{words} ({sizes})", number, biased=not match["bare"])


def product_of(text: str, number: Number, *, biased: bool = False) -> Operation | None:
    """Return the product of the sizes in "4 x (768, 768)" if it equals a number, else None.

    A shape may describe the weight alone, without its bias. A number that differs in one digit is
    meant as its product.

    Args:
        text: ends in the shape, or in what multiplies it.
        number: what the text states for it.
        biased: whether the number may count a bias too, as of `nn.Linear(768, 3072)`.
    """
    start = _SHAPE.search(text)
    if start is None:
        return None
    pieces = _pieces(text)
    found = prefix(pieces, ()) or suffix(pieces, ())
    if found is None or not isinstance(found[0], Operation):
        return None
    ways = [found[0], *(_with_bias(found[0], start[1]) if biased else ())]
    more = number.value - evaluate(found[0], {}).exact
    with_bias = more in (Fraction(size) for size in re.findall(r"\d+", start[1]))  # 4,160 of (64, 64)
    return None if with_bias and not biased else meant_by(ways, number, least=LEAST_TYPED)


def shape_in(text: str) -> Operation | None:
    """Return the product of the sizes in a text that is nothing but a shape: "4 x [16, 4]"."""
    if not _ONLY.fullmatch(text):
        return None
    pieces = _pieces(text)
    found = prefix(pieces, ())
    return found[0] if found and found[1] == len(pieces) and isinstance(found[0], Operation) else None


def meant_by(ways: Sequence[Operation], number: Number, *, least: int) -> Operation | None:
    """Return the first operation that a number is the result of, perhaps but for a digit, or None.

    Args:
        ways: operations without variables.
        number: what a text states for one of them.
        least: a smaller number is one digit apart by chance.
    """
    value, products = alone(number, loose=True), [evaluate(way, {}) for way in ways]
    fitting = (way for way, product in zip(ways, products, strict=True) if value is not None and product.meets(value))
    enough = number.rounded or number.value >= least
    typed = (way for way, product in zip(ways, products, strict=True) if enough and is_typed_for(number, product.exact))
    return next(fitting, None) or next(typed, None)


def _pieces(text: str) -> list[Token]:
    return tokens(_SHAPE.sub(lambda shape: f"({_multiplied(shape[1])}*1)", _without_thousands(text)))


def _without_thousands(text: str) -> str:
    return _THOUSANDS.sub("", text) if ", " in text else text


def _multiplied(sizes: str) -> str:
    return re.sub(rf"\s*{_TO}\s*(?=\d)", "*", sizes).rstrip(", ")


def _with_bias(weight: Operation, sizes: str) -> Iterator[Operation]:
    """Yield the sums of a matrix and its bias, which has the size of its output."""
    found = re.findall(r"\d+", sizes)
    for size in reversed(found) if len(found) == 2 else ():
        yield Operation(("+",), (weight, Number(Fraction(int(size)))))
