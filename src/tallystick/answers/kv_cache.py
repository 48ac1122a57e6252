"""What a cache keeps of the tokens that a model has read, so that the next one need not read them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tallystick.anatomy import Attending, Recurrence, Recurring


class Kept(NamedTuple):
    """What layers that attend alike keep of one sequence."""

    name: str  # of the attention, with {} for the layers' numbers
    layers: int
    window: int | None  # how far they see, None for all
    positions: int  # tokens that each layer keeps
    elements: int  # of one token in one layer

    @property
    def total(self) -> int:
        """Elements of one sequence in all the layers."""
        return self.layers * self.positions * self.elements


def kept(attending: Sequence[Attending], sequence: int) -> tuple[Kept, ...]:
    """What remains cached after `sequence` tokens, as transformers' `DynamicCache` holds it.

    Keys and values of each head of keys: 2 · heads · size in each layer for each token (Shazeer 2019, "Fast
    Transformer Decoding", section 2.3); for latent attention the waist and the shared rotary key (DeepSeek-AI 2024,
    "DeepSeek-V2", section 2.1.4); nothing in a layer that borrows them. A layer that sees `window` positions keeps the `window` - 1 before the next token.
    """
    found: dict[Kept, int] = {}
    for one in attending:
        if not one.heads.kept:
            continue
        for window, layers in one.windows().items():
            width = None if window is None else int(window)
            positions = sequence if width is None else min(sequence, max(width - 1, 0))
            alike = Kept(one.name, 0, width, positions, int(one.heads.kept))
            found[alike] = found.get(alike, 0) + int(layers)
    return tuple(alike._replace(layers=layers) for alike, layers in found.items())


class Carried(NamedTuple):
    """What layers alike that read token after token keep of one sequence."""

    name: str  # of the scan, with {} for the layers' numbers
    layers: int
    keeps: Recurrence


def carried(recurring: Sequence[Recurring]) -> tuple[Carried, ...]:
    """What remains of one sequence in layers that read token after token, however long it is.

    The last inputs of the convolution, and for each channel a state, or for each head one of keys × values.
    """
    found: dict[tuple[str, Recurrence], int] = {}
    for one in recurring:
        alike = one.name, one.keeps._replace(inputs=int(one.keeps.inputs), state=int(one.keeps.state), runs=None)
        found[alike] = found.get(alike, 0) + int(one.layers)
    return tuple(Carried(name, layers, keeps) for (name, keeps), layers in found.items())
