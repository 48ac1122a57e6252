"""Access the tensors that store one packed weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeGuard

from tallystick.errors import BadInput, quoted
from tallystick.formats.weights_file import StoredTensor

Peek = Callable[[str], bytes | None]  # tensor name -> bytes of a small tensor; None if unreadable


class PackedWeight:
    """The tensors in which one weight is stored, by the endings of their names."""

    def __init__(
        self,
        stem: str,
        tensors: Mapping[str, StoredTensor],
        peek: Peek,
        quantization: Mapping[str, Any],
        metadata: Mapping[str, str],
    ) -> None:
        self.stem, self._tensors, self._peek = stem, tensors, peek
        self.quantization, self.metadata = quantization, metadata

    def has(self, ending: str) -> bool:
        """Return whether there is a part with this ending."""
        return self.stem + ending in self._tensors

    def dtype(self, ending: str) -> str:
        """Return the stored dtype of a part."""
        return self._tensors[self.stem + ending][1]

    def shape(self, ending: str, dimensions: int | None = None) -> tuple[int, ...]:
        """Return the shape of a part.

        Args:
            ending: the ending of the part's name.
            dimensions: the required number of dimensions; None for any.

        Raises:
            BadInput: if the part is missing, or has another number of dimensions.
        """
        if not self.has(ending):
            raise BadInput(f"{self.named('')} is packed, but {self.named(ending)} is missing", code="incomplete")
        shape = self._tensors[self.stem + ending][2]
        if dimensions not in (None, len(shape)):
            self.contradiction(ending)
        return shape

    def rows(self, ending: str) -> tuple[tuple[int, ...], int]:
        """Return the leading shape of a part and its last size, which is not 0.

        Raises:
            BadInput: if the part is missing, a scalar, or its last size is 0.
        """
        shape = self.shape(ending)
        if not shape or not shape[-1]:
            self.contradiction(ending)
        return shape[:-1], shape[-1]

    def note(self, ending: str) -> bytes | None:
        """Return the bytes of a small tensor in which a library notes something, or None."""
        return self._peek(self.stem + ending) if self.has(ending) else None

    @property
    def stated_bits(self) -> int | None:
        """Bits of a value from GPTQ's, AWQ's or compressed-tensors' config, or None.

        The groups of compressed-tensors must agree.
        """
        groups = self.quantization.get("config_groups")
        each = (
            [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
            if isinstance(groups, Mapping)
            else []
        )
        stated = {
            one.get("num_bits") for one in each if isinstance(one, Mapping) and isinstance(one.get("num_bits"), int)
        }
        whole = self.quantization.get("bits", self.quantization.get("w_bit", self.quantization.get("num_bits")))
        bits = whole if not stated else stated.pop() if len(stated) == 1 else None
        return bits if is_size(bits) and bits <= 8 else None

    def named(self, ending: str) -> str:
        """Return the name of a part, for messages."""
        return quoted(self.stem + ending, most=120)

    def contradiction(self, *endings: str) -> NoReturn:
        """Raise `BadInput`: the parts cannot belong to one weight."""
        parts = [f"{self.named(one)} of shape {self._tensors[self.stem + one][2]}" for one in endings]
        what = "cannot belong to one packed weight" if len(parts) > 1 else "cannot belong to a packed weight"
        raise BadInput(
            f"{' and '.join(parts)} {what}: the file is broken, or its names are misleading",
            code="malformed",
        )

    def whole(self, dividend: int, divisor: int, *endings: str) -> int:
        """Return an exact quotient.

        Raises:
            BadInput: if the quotient is not a whole number.
        """
        if not divisor or dividend % divisor:
            self.contradiction(*endings)
        return dividend // divisor


def is_size(value: object) -> TypeGuard[int]:
    """Return whether a value is a positive integer of plausible size."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40
