"""Find the largest layer: the least memory that a device needs to hold a part of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tallystick.answers.memory.number_formats import bytes_of
from tallystick.core.entries import Entry
from tallystick.core.module_tree import Module, modules_of


@dataclass(frozen=True)
class LargestLayer:
    """A block, or a module outside of the blocks, that is not split between devices."""

    name: str  # of a run of equal layers: ``model.layers.0-31``
    bytes: int  # of one of them


def largest_layer_of(entries: Iterable[Entry], form: str | None) -> LargestLayer | None:
    """Return the layer whose weights take the most bytes, as accelerate's estimate does.

    A layer is a numbered block, or outside of the blocks a module without children.

    Args:
        entries: the parameters, stacks rolled up.
        form: their number format; None is each tensor's own.
    """
    modules = modules_of(entries, lambda entry: bytes_of(entry, form) // entry.copies)
    return max(_layers(modules, ""), key=lambda layer: layer.bytes, default=None)


def _layers(modules: Iterable[Module], prefix: str) -> Iterator[LargestLayer]:
    for module in modules:
        if module.numbered or not module.children:
            yield LargestLayer(prefix + module.name, module.size)
        else:
            yield from _layers(module.children, f"{prefix}{module.name}.")
