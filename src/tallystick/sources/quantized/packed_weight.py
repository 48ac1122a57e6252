"""One packed weight, and the tensors in which it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeGuard

from tallystick.errors import BadInput, quoted
from tallystick.formats.weights_file import StoredTensor

Peek = Callable[[str], bytes | None]  # the bytes of a small tensor, None where they cannot be read


class PackedWeight:
    """The tensors in which one weight is stored, by the ends of their names."""

    def __init__(
        self,
        stem: str,
        tensors: Mapping[str, StoredTensor],
        peek: Peek,
        told: Mapping[str, Any],
        metadata: Mapping[str, str],
    ) -> None:
        self.stem, self._tensors, self._peek = stem, tensors, peek
        self.told, self.metadata = told, metadata

    def has(self, ending: str) -> bool:
        """Whether there is a part whose name ends so."""
        return self.stem + ending in self._tensors

    def dtype(self, ending: str) -> str:
        """The dtype in which a part is stored."""
        return self._tensors[self.stem + ending][1]

    def shape(self, ending: str, dimensions: int | None = None) -> tuple[int, ...]:
        """The shape of a part, which must be there, and have so many dimensions where that is asked."""
        if not self.has(ending):
            raise BadInput(f"{self.named('')} is packed, and {self.named(ending)} is not there", code="incomplete")
        shape = self._tensors[self.stem + ending][2]
        if dimensions not in (None, len(shape)):
            self.contradiction(ending)
        return shape

    def rows(self, ending: str) -> tuple[tuple[int, ...], int]:
        """The shape of a part without its last size, and that, which is not 0."""
        shape = self.shape(ending)
        if not shape or not shape[-1]:
            self.contradiction(ending)
        return shape[:-1], shape[-1]

    def note(self, ending: str) -> bytes | None:
        """What a library noted in a tensor of a few bytes."""
        return self._peek(self.stem + ending) if self.has(ending) else None

    def named(self, ending: str) -> str:
        """The name of a part, for messages."""
        return quoted(self.stem + ending, most=120)

    def contradiction(self, *endings: str) -> NoReturn:
        """Refuse parts that are of no one weight."""
        parts = [f"{self.named(one)} of shape {self._tensors[self.stem + one][2]}" for one in endings]
        what = "cannot belong to one packed weight" if len(parts) > 1 else "cannot belong to a packed weight"
        raise BadInput(
            f"{' and '.join(parts)} {what}: the file is broken, or packed otherwise than its names say",
            code="malformed",
        )

    def whole(self, dividend: int, divisor: int, *endings: str) -> int:
        """A quotient that has to be whole."""
        if not divisor or dividend % divisor:
            self.contradiction(*endings)
        return dividend // divisor


def is_size(value: object) -> TypeGuard[int]:
    """Whether it is a positive integer, and none that is absurd."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40
