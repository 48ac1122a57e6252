"""Match a family's tensor names and layouts with the decoder's, in both directions.

>>> rules = (
...     Rule("h.{}.c_attn", ("layers.{}.q", "layers.{}.k"), transposed=True),
...     Rule("h.{}.experts.{}.w2", "layers.{}.down"),
... )
>>> shapes = {"layers.0.q": (4, 6), "layers.0.k": (2, 6), "layers.0.down": (2, 6, 3)}
>>> for name, stored in stored_layout(rules, shapes).items():
...     print(name, stored.shape, *stored.parts)
h.0.c_attn (6, 6) Slice(ours='layers.0.q', place=None) Slice(ours='layers.0.k', place=None)
h.0.experts.0.w2 (6, 3) Slice(ours='layers.0.down', place=0)
h.0.experts.1.w2 (6, 3) Slice(ours='layers.0.down', place=1)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")

Shape = tuple[int, ...]


class Rule(NamedTuple):
    """A pattern of stored tensors; numbers in names are written ``{}``.

    Several tensors in `ours` are concatenated in the file `along` an axis. If `theirs` has one
    number more than `ours`, it indexes our first axis: experts stored one by one.
    """

    theirs: str
    ours: str | tuple[str, ...]
    transposed: bool = False  # stored as (inputs, outputs), as GPT-2's Conv1D does
    along: int = 0


class Slice(NamedTuple):
    """A decoder tensor, or one index of its first axis."""

    ours: str
    place: int | None  # None: the whole tensor

    def of(self, tensors: Mapping[str, Any]) -> Any:
        """Return the slice of the tensors by name."""
        tensor = tensors[self.ours]
        return tensor if self.place is None else tensor[self.place]


class Stored(NamedTuple):
    """A tensor as a file of the family holds it."""

    parts: tuple[Slice, ...]
    shape: Shape
    transposed: bool
    along: int


def stored_layout(rules: Iterable[Rule], shapes: Mapping[str, Shape]) -> dict[str, Stored]:
    """Return the tensors that a family stores for a decoder, by their names.

    Args:
        rules: rules of the family.
        shapes: shapes of the decoder's tensors, by name. A rule whose tensors are missing is
            skipped, such as the rule of a bias that the decoder does not have.
    """
    known: dict[str, dict[tuple[str, ...], str]] = {}  # pattern -> numbers -> name
    for name in shapes:
        known.setdefault(_NUMBER.sub("{}", name), {})[tuple(_NUMBER.findall(name))] = name
    found: dict[str, Stored] = {}
    for rule in rules:
        ours = (rule.ours,) if isinstance(rule.ours, str) else rule.ours
        if any(pattern not in known for pattern in ours):
            continue
        for numbers in known[ours[0]]:
            names = [known[pattern][numbers] for pattern in ours]
            extra = rule.theirs.count("{}") > len(numbers)
            for index in range(shapes[names[0]][0]) if extra else (None,):
                each = [shapes[name] if index is None else shapes[name][1:] for name in names]
                shape = list(each[0])
                shape[rule.along] = sum(one[rule.along] for one in each)
                found[rule.theirs.format(*numbers, *(() if index is None else (index,)))] = Stored(
                    tuple(Slice(name, index) for name in names),
                    tuple(reversed(shape)) if rule.transposed else tuple(shape),
                    rule.transposed,
                    rule.along,
                )
    return found
