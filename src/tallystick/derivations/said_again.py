"""Numbers that a sentence says again, rounded: "73,531,646 parameters in all (~73.5M)".

>>> from tallystick.derivations.expressions.tokens import tokens
>>> [str(again.value) for _, again in said_again(tokens("73,531,646 parameters (about 79.5M)"))]
['79500000']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.derivations.arithmetic import Number
from tallystick.derivations.expressions.tokens import Token
from tallystick.derivations.slips import misrounds

LEAST_SAID = 100_000  # a smaller number is not rounded with a letter
MOST_WORDS = 4  # between a number and the same one again
_ABOUT = frozenset(
    ["about", "approximately", "approx", "roughly", "circa", "ca", "rund", "etwa", "environ", "约", "約"]
)
_OPENS = frozenset(["(", "\uff08", "→"])  # a dash between words is read as an arrow


def said_again(pieces: Sequence[Token]) -> Iterator[tuple[Number, Number]]:
    """Yield each exact number with the one that rounds it behind its words, but for a digit."""
    for place, piece in enumerate(pieces):
        number = piece.number
        if number is None or number.rounded or number.unit != 1 or number.value < LEAST_SAID:
            continue
        end = place + 1
        while end <= place + MOST_WORDS and end < len(pieces) and pieces[end].kind == "word":
            end += 1
        behind = [one for one in pieces[end : end + 5] if one.text.lower() not in _ABOUT and one.kind != "relation"]
        if len(behind) < 3 or behind[0].text not in _OPENS or behind[2].kind in ("word", "number", "operator"):
            continue
        again = behind[1].number
        if again is not None and misrounds(again, number.value):
            yield number, again
