"""One tensor of each of some layers: the unit in which two models are compared."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tallystick.core.ledger import Axis

NOWHERE = Axis(0, 0)
_KINDS = re.compile(r"(.*?)_?(weight|bias|scale|shift|gamma|beta)", re.IGNORECASE)


class TensorGroup(NamedTuple):
    """Tensors of one shape that run through some layers: one of each, or `each` where they are experts."""

    name: str  # with {} for the numbers of layers and experts
    shape: tuple[int, ...]
    role: str
    kind: str  # as `kind_of` tells it
    dtype: str
    buffer: bool
    unique: int  # elements of one tensor that nothing else holds
    holder: str  # the name that it is tied to, "" where it is its own
    layered: bool
    layers: Axis  # Axis(0, 1) for what stands in no layer
    each: int
    half: int = 0  # 0 for attention's half of a block and 1 for the MLP's, where a library numbers these apart
    slot: str | None = None  # which projection of its attention or MLP, "" for an embedding, None where nothing tells

    @property
    def size(self) -> int:
        """Elements of one tensor."""
        return int(math.prod(self.shape))

    @property
    def copies(self) -> int:
        """How many tensors."""
        return self.layers.length * self.each

    @property
    def experts(self) -> int:
        """How many experts it holds, whether in one tensor or one by one; 1 for what is no expert's."""
        return self.shape[0] if len(self.inner) < len(self.shape) else self.each

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of one, without the dimension of the experts."""
        fused = self.role == "experts" and self.each == 1 and len(self.shape) > (1 if self.kind == "bias" else 2)
        return self.shape[1:] if fused else self.shape

    @property
    def parameters(self) -> int:
        """Unique parameters of all."""
        return 0 if self.buffer else self.unique * self.copies

    @property
    def shared(self) -> bool:
        """Whether another tensor holds it, or some of it."""
        return self.unique < self.size

    @property
    def title(self) -> str:
        """The name as people read it."""
        return self.name.replace("{}", "*")

    @property
    def stack(self) -> str:
        """The name before the number of the layer."""
        return self.name.partition("{}")[0]

    @property
    def word(self) -> str:
        """What the module calls it, such as ``q_proj``."""
        return self._module[1]

    @property
    def trunk(self) -> str:
        """The name of the module that holds it with its siblings, such as ``layers.{}.mlp``."""
        return self._module[0]

    @property
    def _module(self) -> tuple[str, str]:
        *above, last = self.name.split(".")
        kind = _KINDS.fullmatch(last)
        word = last if kind is None else kind[1]
        while not word and above:
            word = above.pop()
            if word == "{}" and above and self.role == "experts":  # fc1.{}.weight, where experts are numbered last
                word = ""
        return ".".join(above), word
