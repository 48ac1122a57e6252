"""Compare the values of live tensors, or say why they cannot be compared."""

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
    """Access to the values of a live module's tensors."""

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], matrices: Iterable[tuple[str, str]], registered: str = ""
    ) -> None:
        self._tensors = tensors  # may hold weak references, which vanish with the model
        self._matrices = tuple(matrices)  # (embedding, head), usually expected to be tied
        self.registered = registered

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the tensors, which do not exist in another process."""
        return LiveValues, ({}, self._matrices, self.registered)

    def holds(self, name: str) -> bool:
        """Return whether the model is still alive and has a tensor of that name."""
        return name in self._tensors

    def compare(self, one: str, other: str) -> Compared:
        """Return ``copied`` if two tensors hold equal values, transposed or not.

        ``unknown`` means that there are no values to compare.
        """
        first, second = self._tensors.get(one), self._tensors.get(other)
        if first is None or second is None:
            return Compared("unknown", "the counted model no longer exists")
        return compare(first, second)

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Yield the pairs of embedding and head, equal or not."""
        yield from self._matrices


class LaterValues:
    """Values of a module built on the meta device; a comparison builds it in memory."""

    def __init__(self, names: Values, build: Callable[[], nn.Module]) -> None:
        self._names, self._build = names, build
        self.registered = names.registered

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the function that builds the module, as `LiveValues` does."""
        return LiveValues, ({}, tuple(self.duplicates()), self.registered)

    def holds(self, name: str) -> bool:
        """Return whether the model has a tensor of that name."""
        return self._names.holds(name)

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Yield the pairs of embedding and head, whose values may be equal."""
        yield from map(tuple, self._names.duplicates())

    def compare(self, one: str, other: str) -> Compared:
        """Return the relation of two tensors of the model built in memory."""
        return self._built.compare(one, other)

    @cached_property
    def _built(self) -> LiveValues:
        return LiveValues({item.name: item.tensor for item in walk(self._build())}, ())


def compare(one: torch.Tensor, other: torch.Tensor) -> Compared:
    """Return the relation of two tensors in separate memory.

    It is ``copied`` for equal values, transposed or not, else ``untied`` or ``unknown``. Only this
    process's values are read. If other processes hold shards of the same layout, the local shards
    decide. Different shards are certainly ``untied``; equal ones are ``copied``, with a note.

    Args:
        one: a tensor, plain, sharded or quantised.
        other: another one.
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
    """Return whether two tensors of one dtype hold equal bits, part by part; None if unknown."""
    comparable = not (parts.layout or its.layout) if transposed else _alike(parts.layout, its.layout)
    pairs = zip(parts.tensors, its.tensors, strict=True) if comparable else ()
    equal = [equal_bits(mine, theirs.t() if transposed else theirs) for mine, theirs in pairs]
    return False if False in equal else None if None in equal or not equal else True


def _rounded(parts: PlainTensors, its: PlainTensors, *, transposed: bool) -> str | None:
    """Return the reason if only a cast makes two tensors differ, else None."""
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
    """Return a caveat on equal tensors: only shards were compared, or the devices differ."""
    if _in_part(one):
        return "only the shards of this process were compared"
    return None if one.device == other.device else f"the devices are {one.device} and {other.device}"


def _in_part(tensor: torch.Tensor) -> bool:
    """Return whether other processes hold elements that this one does not."""
    return is_sharded(tensor) and parts_of(tensor).tensors[0].numel() < tensor.numel()


def _foreign(tensor: torch.Tensor) -> str | None:
    """Return why a tensor's elements are not its values, or None."""
    if is_lazy(tensor):
        return "a lazy parameter has neither shape nor values before the first forward pass"
    kind = type(tensor).__name__
    if kind not in _PLAIN and not tensor.is_floating_point() and not parts_of(tensor).layout:
        return f"a {kind} holds packed values without their scales"
    return None


def _absent(parts: PlainTensors) -> str | None:
    """Return why there are no values to read, or None."""
    for part in parts.tensors:
        if why := getattr(part, "why_absent", None):
            return str(why)
    if any(part.is_meta for part in parts.tensors):
        return "the meta device holds no values"
    if hasattr(parts.tensors[0], "ds_id") and not parts.tensors[0].numel():
        return "DeepSpeed ZeRO-3 shards the values: gather them first"
    if not any(part.numel() for part in parts.tensors):
        return "this process holds none of their elements"
    if any(is_freed(part) for part in parts.tensors):
        return "the values are freed for now, as sharding does between uses"
    return None


def _alike(layout: object, other: object) -> bool:
    try:
        return bool(layout == other)
    except (RuntimeError, ValueError):  # a layout with tensors has no single truth value
        return False


def _described(tensor: torch.Tensor) -> str:
    kind, layout = type(tensor).__name__, str(tensor.layout).removeprefix("torch.")
    if is_sharded(tensor):
        return f"a {kind} of {', '.join(map(repr, tensor.placements))}"
    if kind in _PLAIN:
        return "a plain tensor" if layout == "strided" else f"a {layout} tensor"
    return f"a {kind}"


def equal_bits(one: torch.Tensor, other: torch.Tensor) -> bool | None:
    """Return whether two plain tensors hold the same bits; None if torch cannot compare them."""
    import torch

    # Compare bits, not values: a NaN equals itself, and 0.0 differs from -0.0.
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(one.element_size())
    if one.is_quantized or other.is_quantized:  # torch.equal also compares the scales
        bits = None
    try:
        mine, its = one.detach(), other.detach().to(one.device)
        return bool(torch.equal(mine.view(bits), its.view(bits))) if bits else bool(torch.equal(mine, its))
    except (RuntimeError, NotImplementedError, TypeError):  # sparse tensors, fake ones
        return None
