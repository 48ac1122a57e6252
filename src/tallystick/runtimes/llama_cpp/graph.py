"""Compute buffers: what one step's graph holds at the same time, as ggml allocates it.

The order of the operations is llama.cpp's (src/llama-graph.cpp and src/models/); their results are
placed as `Pool` places them. Sums, products, norms and rotations overwrite their operand unless it
is a view or something else reads it (`ggml_op_can_inplace` in ggml/src/ggml-alloc.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tallystick.core.anatomy import Heads
from tallystick.runtimes.engines import Rank
from tallystick.runtimes.llama_cpp.pool import Block, Pool
from tallystick.runtimes.llama_cpp.releases import Release

FLOAT, HALF, INDEX = 4, 2, 8  # bytes of an element
COPIES = 4  # of a pipeline's inputs (ggml/src/ggml-backend.cpp, GGML_SCHED_MAX_COPIES)
GATED = ("qwen3_5", "qwen3_next")  # types whose queries come with a gate of their size
# Types whose gate and up projection are one tensor in a GGUF file.
FUSED_UP = ("phi3", "glm4", "glm")


NOTHING = Block(0, 0)
Mask = tuple[bool, int]  # whether it is of layers with a window, and its cells in one stream


class Layer(NamedTuple):
    """What one layer computes."""

    heads: Heads | None  # None: it is recurrent
    mask: Mask | None
    routed: bool


class Graph(NamedTuple):
    """One step of a model."""

    step: int  # tokens
    outputs: int  # rows of logits
    fused: bool  # FlashAttention
    release: Release
    rank: Rank
    masks: Sequence[Mask]
    copies: int = 1  # of what a device reads from others

    def row(self, elements: int) -> int:
        """Return the bytes of that many elements for each token of the step."""
        return self.step * elements * FLOAT

    @property
    def hidden(self) -> int:
        """Bytes of the hidden states."""
        return self.row(self.rank.hidden)

    @property
    def cells(self) -> int:
        """Cells of all masks."""
        return sum(cells for _, cells in self.masks)

    @property
    def mask_width(self) -> int:
        """Bytes of a mask's element as the host makes it."""
        return HALF if self.fused and self.release.half_masks else FLOAT

    def host(self) -> int:
        """Return the bytes of the host's part: inputs and embeddings."""
        rows = 4 if self.release.mixed else 2 if self.release.embeds else 1
        masks = self.step * self.cells * self.mask_width
        return masks * self.copies + rows * self.hidden

    def device(self, layers: Iterable[Layer], *, head: bool, copied: int = 0) -> tuple[int, str]:
        """Return the bytes of the part on one device, and what fills them.

        Args:
            layers: those of the device.
            head: whether the head is computed there.
            copied: bytes of a head in the host's memory, which long steps copy.
        """
        pool = Pool()
        unread = [pool.take(self.hidden) for _ in range(2 * self.release.mixed)]
        stream = pool.take(self.hidden * self.copies)
        masks = {mask: pool.take(self.step * mask[1] * self.mask_width * self.copies) for mask in self.masks}
        if self.copies > 1:  # they stay
            stream, masks = NOTHING, dict.fromkeys(masks, NOTHING)
        if unread:  # inputs of images, which text does not read, and a copy that stays
            pool.take(self.hidden)
            pool.give(*unread)
        halves: dict[Mask, Block] = {}
        ordered = list(layers)
        for number, layer in enumerate(ordered, 1):
            if layer.heads is None or layer.mask is None:  # what a recurrence holds is less than an MLP
                out = pool.take(self.hidden)
            else:
                out = self._attend(pool, layer.heads, layer.mask, masks, halves)
            rows = self
            if head and number == len(ordered):  # from here on, only rows of which logits are read
                rows = self._replace(step=self.outputs)
                out, stream = rows.selected(pool, out, stream)
            pool.give(stream)
            stream = rows.feed(pool, layer.routed, out)
        before = pool.most
        pool.give(*masks.values(), *halves.values())
        if head and not self.release.mixed:  # all else is free by then
            pool = Pool()
            pool.most = before
            pool.take(self.outputs * self.rank.hidden * FLOAT)
        if head:
            pool.take(self.outputs * self.rank.vocabulary * FLOAT + copied)
        if pool.most > before:
            return pool.most, f"logits of {self.outputs:,} tokens and hidden states of {self.step:,}, in float32"
        return pool.most, f"hidden states of {self.step:,} tokens in float32, and masks of {self.cells:,} cells"

    def selected(self, pool: Pool, out: Block, stream: Block) -> tuple[Block, Block]:
        """Return the rows of an attention's result and of the residual stream that are read on."""
        rows = pool.take(self.hidden)
        pool.give(out)
        kept = pool.take(self.hidden)
        pool.give(stream)
        return rows, kept

    def _attend(
        self, pool: Pool, heads: Heads, mask: Mask, masks: dict[Mask, Block], halves: dict[Mask, Block]
    ) -> Block:
        """Take and give what an attention holds, and return its result."""
        if heads.latent is not None and self.release.latent:
            return self._attend_latent(pool, heads, mask, masks, halves)
        queries, values = int(heads.queries) * int(heads.size), int(heads.queries) * int(heads.value_size)
        keys, kept = int(heads.keys) * int(heads.size), int(heads.keys) * int(heads.value_size)
        gates: list[Block] = []
        normed = pool.take(self.hidden)
        if self.rank.fused:
            turned = self._part(pool, normed, queries, keys, kept)
        else:
            gated = self.rank.architecture.startswith(GATED)
            first = pool.take(self.row(queries * (2 if gated else 1)))
            turned = pool.take(self.row(queries))  # rotated: of a view, so in a place of its own
            if gated:
                gates.append(first)
            else:
                pool.give(first)
            value = pool.take(self.row(kept))
            key = pool.take(self.row(keys))
            pool.give(normed)
            rotated = pool.take(self.row(keys))
            pool.give(key, rotated, value)
        mixed = self._mix(pool, turned, int(heads.queries), values, mask, masks, halves)
        for gate in gates:
            part = pool.take(self.row(queries))
            pool.give(gate, part)
        out = pool.take(self.hidden)
        pool.give(mixed)
        return out

    def _attend_latent(
        self, pool: Pool, heads: Heads, mask: Mask, masks: dict[Mask, Block], halves: dict[Mask, Block]
    ) -> Block:
        """Take and give what a latent attention holds, whose queries are as wide as the latent."""
        number, latent, rotary = int(heads.queries), int(heads.latent or 0), int(heads.rotary or 0)
        normed = pool.take(self.hidden)
        queries = pool.take(self.row(number * int(heads.size)))
        absorbed = pool.take(self.row(number * (latent - rotary)))
        rotated = pool.take(self.row(number * rotary))
        pool.give(queries)
        queries = pool.take(self.row(number * latent))
        pool.give(absorbed, rotated)
        key = pool.take(self.row(latent))
        pool.give(normed, key)
        mixed = self._mix(pool, queries, number, number * (latent - rotary), mask, masks, halves)
        values = pool.take(self.row(number * int(heads.value_size)))
        pool.give(mixed)
        joined = pool.take(self.row(number * int(heads.value_size)))
        pool.give(values)
        out = pool.take(self.hidden)
        pool.give(joined)
        return out

    def _part(self, pool: Pool, normed: Block, queries: int, keys: int, values: int) -> Block:
        """Allocate and free the parts of one fused QKV result, and return the queries."""
        joined = pool.take(self.row(queries + keys + values))
        pool.give(normed)
        if self.release.streams:
            turned = pool.take(self.row(queries))
            rotated = pool.take(self.row(keys))
            pool.give(rotated, joined)
            return turned
        whole = pool.take(self.row(queries))  # each part was made contiguous, and then rotated
        turned = pool.take(self.row(queries))
        pool.give(whole)
        whole = pool.take(self.row(keys))
        rotated = pool.take(self.row(keys))
        pool.give(whole)
        whole = pool.take(self.row(values))
        pool.give(joined, rotated, whole)
        return turned

    def _mix(
        self,
        pool: Pool,
        queries: Block,
        number: int,
        values: int,
        mask: Mask,
        masks: dict[Mask, Block],
        halves: dict[Mask, Block],
    ) -> Block:
        """Take what the attention over the cells holds, and return its result."""
        if self.fused:
            if not self.release.half_masks and mask not in halves:
                halves[mask] = pool.take(self.step * mask[1] * HALF)
                pool.give(masks.pop(mask))
            mixed = pool.take(self.row(values))
            pool.give(queries)
            return mixed
        scores = pool.take(self.row(number * mask[1]))
        pool.give(queries)
        product = pool.take(self.row(values))
        pool.give(scores)
        mixed = pool.take(self.row(values))  # contiguous
        pool.give(product)
        return mixed

    def feed(self, pool: Pool, routed: bool, stream: Block) -> Block:
        """Take and give what an MLP holds, and return its sum with the residual stream."""
        rank = self.rank
        experts = rank.experts if routed else None
        used, inner = (experts.used, experts.inner) if experts else (1, rank.inner)
        normed = pool.take(self.hidden)
        first = pool.take(self.row(used * inner * (2 if rank.architecture in FUSED_UP and not experts else 1)))
        parts = [first]
        if rank.gated and rank.architecture not in FUSED_UP:
            parts.append(pool.take(self.row(used * inner)))
        if not (experts and rank.shared):
            pool.give(normed)
        product = pool.take(self.row(used * inner)) if rank.gated and self.release.gates else first
        pool.give(*(part for part in parts if part is not product))
        out = pool.take(used * self.hidden)
        pool.give(product)
        if used > 1:
            total = pool.take(self.hidden)
            pool.give(out)
            out = total
        if experts and rank.shared:
            out = self._share(pool, rank.shared, normed, out)
        pool.give(stream)
        return out

    def _share(self, pool: Pool, inner: int, normed: Block, routed: Block) -> Block:
        """Take and give what shared experts hold, and return their sum with the routed ones."""
        gate, up = pool.take(self.row(inner)), pool.take(self.row(inner))
        pool.give(normed)
        product = pool.take(self.row(inner))
        pool.give(gate, up)
        out = pool.take(self.hidden)
        pool.give(product, out)
        return routed
