"""The terms of a model's count: one product for each tensor, or each stack of equal tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tallystick.core.algebra.dims import Dim, expression_of
from tallystick.core.algebra.expressions import Expression, evaluate
from tallystick.core.algebra.notations import TEXT, write
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger


class Factor(NamedTuple):
    """One factor of a product: a size, a number of layers, or a constant."""

    text: str  # in the model's sizes: d_model
    value: int


class Term(NamedTuple):
    """The parameters of one tensor, or of one tensor per layer."""

    tensor: str  # its name, with * for the number of a layer
    role: str
    layers: tuple[Factor, ...]  # how many there are
    shape: tuple[Factor, ...]  # the sizes of one
    tied: bool  # then it adds nothing
    product: Expression  # of all factors

    factors: tuple[Factor, ...]  # of the product: n_layers, n_heads, head_dim, d_model

    @property
    def part(self) -> str:
        """The module with the tensor: the head, or the attention of the layers."""
        return ".".join([name for name in self.tensor.split(".")[:-1] if name != "*"][:2]) or self.tensor

    @property
    def written(self) -> str:
        """The shape, as the model states it: (n_heads·head_dim, d_model)."""
        return f"({', '.join(size.text for size in self.shape)})"

    @property
    def value(self) -> int:
        """What the term adds to the count."""
        return 0 if self.tied else math.prod(factor.value for factor in self.factors)


def terms_of(ledger: Ledger, values: Mapping[str, int]) -> list[Term]:
    """Return the terms of a ledger at given sizes.

    Args:
        ledger: the model, with shapes that know their sizes.
        values: the value of each size.

    >>> from tallystick import count
    >>> for term in terms_of(count("bare-bones-lm"), {"vocab_size": 10, "d_model": 3}):
    ...     print(term.tensor, term.written, term.value)
    embedding.weight (vocab_size, d_model) 30
    head.weight (vocab_size, d_model) 30
    head.bias (vocab_size) 10
    """
    last: dict[str, int] = {}  # where the last stack of each name begins
    for entry in ledger.parameters:
        if entry.axes:
            last[entry.name] = max(last.get(entry.name, 0), int(entry.axes[0].start))
    return [_term(entry, values, last.get(entry.name, 0)) for entry in ledger.parameters]


def _term(entry: Entry, values: Mapping[str, int], last: int) -> Term:
    shape = [expression_of(size) for size in entry.shape]
    layers = tuple(one for axis in entry.axes for one in _factors(expression_of(axis.length), values))
    return Term(
        tensor=_name(entry, last),
        role=entry.role,
        layers=layers,
        shape=tuple(Factor(write(size, TEXT), int(evaluate(size, values))) for size in shape),
        tied=entry.storage != entry.name and not entry.unique,
        product=expression_of(math.prod((*(axis.length for axis in entry.axes), *entry.shape), start=Dim(1, 1))),
        factors=(*layers, *(one for size in shape for one in _factors(size, values))),
    )


def _name(entry: Entry, last: int) -> str:
    """Return a tensor's name: * for the numbers of several layers, -1 for the last one alone."""
    name = entry.name
    for axis in entry.axes:
        alone = expression_of(axis.length) == 1
        number = "-1" if last and axis.start == last else str(int(axis.start))
        name = name.replace("{}", number if alone else "*", 1)
    return name


def _factors(size: Expression, values: Mapping[str, int]) -> Iterator[Factor]:
    """Yield the factors of a size; a product is split."""
    if isinstance(size, tuple) and size[0] == "*":
        yield from _factors(size[1], values)
        yield from _factors(size[2], values)
    elif size != 1:
        yield Factor(write(size, TEXT), int(evaluate(size, values)))
