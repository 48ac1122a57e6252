"""From a family's tensors to the decoder's and back: other names, and sometimes another layout.

>>> rules = (
...     Rule("h.{}.attn.c_attn.weight", ("layers.{}.q.weight", "layers.{}.k.weight"), transposed=True),
...     Rule("h.{}.experts.{}.w2.weight", "layers.{}.down_proj"),
... )
>>> shapes = {"layers.0.q.weight": (4, 6), "layers.0.k.weight": (2, 6), "layers.0.down_proj": (2, 6, 3)}
>>> for name, stored in laid_out(rules, shapes).items():
...     print(name, stored.shape, *stored.parts)
h.0.attn.c_attn.weight (6, 6) Slice(ours='layers.0.q.weight', place=None) Slice(ours='layers.0.k.weight', place=None)
h.0.experts.0.w2.weight (6, 3) Slice(ours='layers.0.down_proj', place=0)
h.0.experts.1.w2.weight (6, 3) Slice(ours='layers.0.down_proj', place=1)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")

Shape = tuple[int, ...]


class Rule(NamedTuple):
    """One kind of stored tensor, numbers written as ``{}``.

    Several of `ours` are stored as one, one after another `along` an axis. Where `theirs` has a number more than
    `ours`, it numbers our first axis: experts that are stored one by one.
    """

    theirs: str
    ours: str | tuple[str, ...]
    transposed: bool = False  # stored (inputs, outputs), as GPT-2's Conv1D has it
    along: int = 0


class Slice(NamedTuple):
    """One of our tensors, or what stands at an index of it."""

    ours: str
    place: int | None  # None: all of it

    def of(self, tensors: Mapping[str, Any]) -> Any:
        """It, out of our tensors by name."""
        tensor = tensors[self.ours]
        return tensor if self.place is None else tensor[self.place]


class Stored(NamedTuple):
    """A tensor as a file of the family holds it."""

    parts: tuple[Slice, ...]
    shape: Shape
    transposed: bool
    along: int


def laid_out(rules: Iterable[Rule], shapes: Mapping[str, Shape]) -> dict[str, Stored]:
    """The tensors that a family stores for those of a decoder, by their names.

    Args:
        rules: of the family.
        shapes: those of the decoder's tensors, by name. A rule one of whose tensors is not among them is left out,
            as a bias is where there is none.
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
