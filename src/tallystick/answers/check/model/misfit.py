"""Explain a labelled number that is not the label's: which size was used wrongly.

>>> from tallystick import count
>>> found = misfit("MLP per layer", Fraction(2 * 4096 * 11008), Quantities(count("llama-2-7b")))
>>> found.sentence
'MLP of one layer has 135,266,304: two matrices are counted, and there are three (gate, up, down)'
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.labels import PROJECTIONS
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity

_PLAIN_WORDS = re.compile(
    r"\b(?:self|multi.?head(?:ed)?|attention|mlp|ffn?|feed.?forward|experts?|positions?|positional|embeddings?|token|params|parameters"
    r"|w_?[qkvo]|[qkvo]|[qkvo]_proj|quer(?:y|ies)|keys?|values?|(?:gate|up|down)(?:_proj)?|projections?|lm.?head|output"
    r"|total|the|all|per|each|in|of|one|layers?|blocks?)\b",
    re.IGNORECASE,
)


class Misfit(NamedTuple):
    """What a label names in the model, its parameters, and why the text differs, if known."""

    what: str
    parameters: int
    why: str

    @property
    def sentence(self) -> str:
        """The quantity, its number and the reason, as one sentence."""
        return f"{self.what} has {self.parameters:,}" + (f": {self.why}" if self.why else "")


def misfit(label: str, number: Fraction, quantities: Quantities) -> Misfit | None:
    """Return what the label names, if the model has another number of parameters for it.

    Return None if the label names nothing for certain, or if the number fits.

    Args:
        label: the words before the number.
        number: parameters stated by the text.
        quantities: the quantities of the model.
    """
    meant = quantities.meant(label, number)
    if meant is None or any(_same(meant, other) for other in quantities.of(number)):
        return None
    why = _why(meant, number, quantities)
    off = abs(number - meant.parameters) > _LITTLE * meant.parameters
    part = any(not other.component or other.atoms & meant.atoms for other in quantities.of(number))
    if why or (off and not part and _nothing_else(label)):
        return Misfit(meant.what, meant.parameters, why)
    return None


def _nothing_else(label: str) -> bool:
    """Return whether a label has only plain words; other words may change what it counts."""
    return not _PLAIN_WORDS.sub("", label).strip(" -:()*_")


def _same(meant: Quantity, other: Quantity) -> bool:
    """Return whether a quantity has the same component and layers; kinds may differ."""
    return other.component == meant.component and other.one_layer == meant.one_layer


def _why(meant: Quantity, number: Fraction, quantities: Quantities) -> str:
    others = (other for other in quantities.of(number) if other.component == meant.component)
    if (other := next(others, None)) is not None:
        return "that is one layer" if other.one_layer else "that is all layers together"
    if "mlp" in meant.tags and abs(3 * number - 2 * meant.parameters) <= _LITTLE * meant.parameters:
        return "two matrices are counted, and there are three (gate, up, down)"
    if "mlp" in meant.tags and abs(2 * number - 3 * meant.parameters) <= _LITTLE * meant.parameters:
        return "three matrices are counted, and there are two (up, down)"
    if "attention" in meant.tags:
        return _attention(meant, number, quantities)
    return ""


def _attention(meant: Quantity, number: Fraction, quantities: Quantities) -> str:
    """Return why a number is not attention's: its heads are fewer, or do not span the width."""
    query, one = (_queries(quantities, one_layer=layer) for layer in (meant.one_layer, True))
    if query is None:
        return ""
    matrices = 3 if "qkv" in meant.component else len(meant.component & PROJECTIONS) or 4

    def is_of(size: int) -> bool:
        return size > meant.parameters and abs(number - size) <= _LITTLE * size

    if is_of(matrices * query.parameters):
        return "keys and values are counted as wide as queries, and have fewer heads"
    tables = {size for table in quantities.whole if table.component == {"token"} for size in table.factors}
    width = next((size for size in (one or query).factors if size in tables), 0)
    inner = next((size for size in (one or query).factors if size != width), width)
    if inner != width and is_of(matrices * query.parameters * width // inner):
        counted = f"{matrices} × {width:,}²" if matrices > 1 else f"{width:,}²"
        return f"{counted} is counted, but the query heads together are {inner:,} wide"
    return ""


_LITTLE = Fraction(1, 100)  # share of biases and norms, which may be counted or not


def _queries(quantities: Quantities, *, one_layer: bool) -> Quantity | None:
    """Return the query projection with its bias, of one layer or of all."""
    found = (one for one in quantities.all if one.component == {"attention", "q"} and one.one_layer == one_layer)
    return max(found, key=lambda quantity: quantity.parameters, default=None)
