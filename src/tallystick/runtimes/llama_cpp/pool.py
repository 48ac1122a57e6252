"""A buffer whose pieces are taken and given back, as ggml's graph allocator does it.

`ggml_dyn_tallocr_alloc` and `ggml_dyn_tallocr_free_bytes` in ggml/src/ggml-alloc.c.
"""

from __future__ import annotations

from typing import NamedTuple

ALIGNED = 128  # bytes, of CUDA's buffers


class Block(NamedTuple):
    """A piece of a buffer."""

    offset: int
    size: int


class Pool:
    """A buffer that grows.

    >>> pool = Pool()
    >>> first, second = pool.take(1024), pool.take(256)
    >>> pool.give(first)
    >>> pool.take(512), pool.most
    (Block(offset=0, size=512), 1280)
    """

    def __init__(self) -> None:
        self.free: list[Block] = []  # between taken pieces
        self.end = self.most = 0

    def take(self, size: int) -> Block:
        """Return the smallest free piece that is large enough, or one at the end."""
        size = -(-size // ALIGNED) * ALIGNED
        fitting = [block for block in self.free if block.size >= size]
        if not fitting:
            block = Block(self.end, size)
            self.end += size
            self.most = max(self.most, self.end)
            return block
        best = min(fitting, key=lambda block: (block.size, -block.offset))
        self.free.remove(best)
        if best.size > size:
            self.free.append(Block(best.offset + size, best.size - size))
        return Block(best.offset, size)

    def give(self, *blocks: Block) -> None:
        """Give pieces back; neighbours are joined."""
        for block in blocks:
            start, end = block.offset, block.offset + block.size
            for other in [other for other in self.free if end == other.offset or start == sum(other)]:
                self.free.remove(other)
                start, end = min(start, other.offset), max(end, other.offset + other.size)
            if end == self.end:
                self.end = start
            elif end > start:
                self.free.append(Block(start, end - start))
