"""Comparing the values of live tensors, or saying why they cannot be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tallystick.core.evidence import ROUNDED, Compared, Values
from tallystick.sources.torch_module.live_tensors import PlainTensors, is_freed, is_lazy, is_sharded, parts_of, shape_of
from tallystick.sources.torch_module.named_parameters import walk

if TYPE_CHECKING:
    import torch
    from torch import nn


_PLAIN = ("Tensor", "Parameter")


class LiveValues:
    """The values of a live module's tensors."""

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], matrices: Iterable[tuple[str, str]], registered: str = ""
    ) -> None:
        self._tensors = tensors  # perhaps weakly held: then a tensor that is not there any more is no more
        self._matrices = tuple(matrices)  # pairs that people expect to be one: embedding and head
        self.registered = registered

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the tensors: in another process the model that was counted is no more."""
        return LiveValues, ({}, self._matrices, self.registered)

    def holds(self, name: str) -> bool:
        """Whether the model, if it still lives, has a tensor of that name."""
        return name in self._tensors

    def compare(self, one: str, other: str) -> Compared:
        """``copied`` where two tensors hold equal values, transposed or not; ``unknown`` where they hold none."""
        first, second = self._tensors.get(one), self._tensors.get(other)
        if first is None or second is None:
            return Compared("unknown", "the model that was counted is no more")
        return compare(first, second)

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Embedding and head where they are equal, or differ, though nobody said that they should be one."""
        yield from self._matrices


class LaterValues:
    """The values of a module that was built without any: it is built in memory when two of them are compared."""

    def __init__(self, names: Values, build: Callable[[], nn.Module]) -> None:
        self._names, self._build = names, build
        self.registered = names.registered

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what builds the module, as `LiveValues` is without its tensors."""
        return LiveValues, ({}, tuple(self.duplicates()), self.registered)

    def holds(self, name: str) -> bool:
        """Whether the model has a tensor of that name."""
        return self._names.holds(name)

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Embedding and head, whose values may be equal though nobody said that they should be one."""
        yield from map(tuple, self._names.duplicates())

    def compare(self, one: str, other: str) -> Compared:
        """How two tensors of the model in memory compare."""
        return self._built.compare(one, other)

    @cached_property
    def _built(self) -> LiveValues:
        return LiveValues({item.name: item.tensor for item in walk(self._build())}, ())


def compare(one: torch.Tensor, other: torch.Tensor) -> Compared:
    """How two tensors in separate memory compare: ``copied``, transposed or not, ``untied`` or ``unknown``.

    Only what this process holds is read. Where other processes hold shards of the same layout, those that are here
    decide: different ones are ``untied`` for certain, equal ones ``copied`` with a word on it.
    """
    if why := _foreign(one) or _foreign(other):
        return Compared("unknown", why)
    shape, its_shape = shape_of(one), shape_of(other)
    transposed = len(shape) == 2 and shape != its_shape and shape == its_shape[::-1]
    if shape != its_shape and not transposed:
        return Compared("untied", f"the shapes are {shape} and {its_shape}")
    parts, its = parts_of(one), parts_of(other)
    if why := _absent(parts) or _absent(its):
        return Compared("unknown", why)
    cast = one.dtype != other.dtype
    equal = False if cast else _equal(parts, its, transposed=transposed)
    if equal is None:
        return Compared("unknown", f"torch cannot compare {_described(one)} with {_described(other)}")
    if not equal:
        return Compared("untied", _rounded(parts, its, transposed=transposed) if cast else None)
    return Compared("copied", _but(one, other))


def _equal(parts: PlainTensors, its: PlainTensors, *, transposed: bool) -> bool | None:
    """Whether two tensors of one dtype hold the same bits, part by part; None where that cannot be told."""
    comparable = not (parts.layout or its.layout) if transposed else _alike(parts.layout, its.layout)
    pairs = zip(parts.tensors, its.tensors, strict=True) if comparable else ()
    equal = [equal_bits(mine, theirs.t() if transposed else theirs) for mine, theirs in pairs]
    return False if False in equal else None if None in equal or not equal else True


def _rounded(parts: PlainTensors, its: PlainTensors, *, transposed: bool) -> str | None:
    """That a cast alone makes two tensors of different dtypes differ; None where more does, or it cannot be told."""
    if len(parts.tensors) != 1 or len(its.tensors) != 1 or not (parts.layout == its.layout == ()):
        return None
    (mine,), (theirs,) = parts.tensors, its.tensors
    theirs = theirs.t() if transposed else theirs
    if not (mine.is_floating_point() and theirs.is_floating_point()):
        return None
    for wide, narrow in ((mine, theirs), (theirs, mine)):
        if equal_bits(wide.detach().to(narrow.dtype), narrow):
            return f"{ROUNDED}{str(narrow.dtype).removeprefix('torch.')}"
    return None


def _but(one: torch.Tensor, other: torch.Tensor) -> str | None:
    """What is to be said of equal tensors: that not all was compared, or that they are not in one place."""
    if _in_part(one):
        return "only the shards of this process were compared"
    return None if one.device == other.device else f"the devices are {one.device} and {other.device}"


def _in_part(tensor: torch.Tensor) -> bool:
    """Whether other processes hold elements that this one does not."""
    return is_sharded(tensor) and parts_of(tensor).tensors[0].numel() < tensor.numel()


def _foreign(tensor: torch.Tensor) -> str | None:
    """Why a tensor is none whose elements are its values."""
    if is_lazy(tensor):
        return "a lazy parameter has neither shape nor values before the first forward pass"
    kind = type(tensor).__name__
    if kind not in _PLAIN and not tensor.is_floating_point() and not parts_of(tensor).layout:
        return f"a {kind} holds packed values, whose scales are kept elsewhere"
    return None


def _absent(parts: PlainTensors) -> str | None:
    """Why there are no values to read."""
    for part in parts.tensors:
        if why := getattr(part, "why_absent", None):
            return str(why)
    if any(part.is_meta for part in parts.tensors):
        return "the meta device holds no values"
    if hasattr(parts.tensors[0], "ds_id") and not parts.tensors[0].numel():
        return "DeepSpeed ZeRO-3 holds the values in pieces: gather them first"
    if not any(part.numel() for part in parts.tensors):
        return "this process holds no element of them"
    if any(is_freed(part) for part in parts.tensors):
        return "the memory of the values is given back for now, as sharding does between uses"
    return None


def _alike(layout: object, other: object) -> bool:
    try:
        return bool(layout == other)
    except (RuntimeError, ValueError):  # it holds tensors, of which no one truth can be told
        return False


def _described(tensor: torch.Tensor) -> str:
    kind, layout = type(tensor).__name__, str(tensor.layout).removeprefix("torch.")
    if is_sharded(tensor):
        return f"a {kind} of {', '.join(map(repr, tensor.placements))}"
    if kind in _PLAIN:
        return "a plain tensor" if layout == "strided" else f"a {layout} tensor"
    return f"a {kind}"


def equal_bits(one: torch.Tensor, other: torch.Tensor) -> bool | None:
    """Whether two plain tensors hold the same bits, None where torch cannot tell."""
    import torch

    # By bits, not by ==: a NaN equals itself, and 0.0 is not -0.0.
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(one.element_size())
    if one.is_quantized or other.is_quantized:  # their bits mean nothing without their scales, which torch compares too
        bits = None
    try:
        mine, its = one.detach(), other.detach().to(one.device)
        return bool(torch.equal(mine.view(bits), its.view(bits))) if bits else bool(torch.equal(mine, its))
    except (RuntimeError, NotImplementedError, TypeError):  # sparse tensors, fake ones
        return None
