"""A tensor repeated over layers: the unit in which two models are compared."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tallystick.core.entries import Axis

NOWHERE = Axis(0, 0)
_KINDS = re.compile(r"(.*?)_?(weight|bias|scale|shift|gamma|beta)", re.IGNORECASE)


class TensorGroup(NamedTuple):
    """Tensors of one name pattern and shape over some layers: `each` of them in every layer."""

    name: str  # with {} for layer and expert numbers
    shape: tuple[int, ...]
    role: str
    kind: str  # from `kind_of`
    dtype: str
    buffer: bool
    unique: int  # elements of one tensor that no other tensor holds
    holder: str  # the name that it is tied to, "" if it is not
    layered: bool
    layers: Axis  # Axis(0, 1) outside of layers
    each: int
    half: int = 0  # if a library numbers them separately: 0 for a block's attention half, 1 for its MLP half
    slot: str | None = None  # the projection in its attention or MLP, "" for an embedding, None if unknown

    @property
    def size(self) -> int:
        """Elements of one tensor."""
        return int(math.prod(self.shape))

    @property
    def copies(self) -> int:
        """Number of tensors."""
        return self.layers.length * self.each

    @property
    def experts(self) -> int:
        """Number of experts, in one tensor or one by one; 1 for a tensor that is not an expert."""
        return self.shape[0] if len(self.inner) < len(self.shape) else self.each

    @property
    def inner(self) -> tuple[int, ...]:
        """Shape of one expert or tensor, without the expert dimension."""
        fused = self.role == "experts" and self.each == 1 and len(self.shape) > (1 if self.kind == "bias" else 2)
        return self.shape[1:] if fused else self.shape

    @property
    def parameters(self) -> int:
        """Unique parameters of all tensors."""
        return 0 if self.buffer else self.unique * self.copies

    @property
    def shared(self) -> bool:
        """Whether another tensor holds it, completely or in part."""
        return self.unique < self.size

    @property
    def title(self) -> str:
        """The name, with * for numbers."""
        return self.name.replace("{}", "*")

    @property
    def stack(self) -> str:
        """The name's prefix before the layer number."""
        return self.name.partition("{}")[0]

    @property
    def word(self) -> str:
        """The module's own name, such as ``q_proj``."""
        return self._module[1]

    @property
    def trunk(self) -> str:
        """The name of the parent module, such as ``layers.{}.mlp``."""
        return self._module[0]

    @property
    def _module(self) -> tuple[str, str]:
        *above, last = self.name.split(".")
        kind = _KINDS.fullmatch(last)
        word = last if kind is None else kind[1]
        while not word and above:
            word = above.pop()
            if word == "{}" and above and self.role == "experts":  # fc1.{}.weight: experts are numbered last
                word = ""
        return ".".join(above), word
