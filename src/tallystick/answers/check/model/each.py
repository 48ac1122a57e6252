"""Name all matrices that have a number each: "q_proj, o_proj: 3584 × 3584 = 12,845,056".

>>> from fractions import Fraction
>>> from tallystick import count
>>> of = Quantities(count("llama-2-7b"))
>>> found = of.of(Fraction(4096 * 4096))[0]
>>> each_of(found, "W_q and W_o are each 4096 × 4096", [], of).what
'each of the query and attention output projections of one layer'
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tallystick.answers.check.labels import MATRICES, matrices_in
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity
from tallystick.answers.reconcile.conventions import listed
from tallystick.derivations.text.lines import DIGIT

_PROJECTION = " projection"


def each_of(match: Quantity, line: str, labels: Iterable[str], quantities: Quantities) -> Quantity:
    """Return the matrices that a label names and that have a number each, or what has it alone.

    Args:
        match: what the number counts, by itself.
        line: its line, whose words before all numbers come first.
        labels: texts that may name it, nearest first.
        quantities: the quantities of the model.
    """
    if match.some or match.tied_to or len(match.component.intersection(MATRICES)) != 1 or _PROJECTION not in match.what:
        return match
    before = DIGIT.split(line, maxsplit=1)[0]  # "gate = up = down: 4096 × 14336"
    asked = next((named for label in (before, *labels) if (named := matrices_in(label))), frozenset[str]())
    if match.component.isdisjoint(asked):
        return match  # "c_attn …, c_proj 768 × 768 = 589,824"
    same = [
        one
        for one in quantities.of(Fraction(match.parameters))
        if one.one_layer == match.one_layer
        and one.stack == match.stack
        and len(one.component.intersection(MATRICES)) == 1
    ]
    ways = [next((one for one in same if tag in one.component), None) for tag in MATRICES if tag in asked]
    found = [one for one in ways if one is not None]
    if len(found) < max(2, len(asked)):
        return match
    words = [one.what.partition(_PROJECTION)[0] for one in found]
    rest = found[0].what.partition(_PROJECTION)[2]
    names = dict.fromkeys(name for one in found for name in one.names)
    return match._replace(what=f"each of the {listed(words)}{_PROJECTION}s{rest}", names=tuple(names))
