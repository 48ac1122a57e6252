"""Keys and values of the tokens that were read, kept so that the next token costs one step and not all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from tallystick.models.config import DecoderConfig


class LayerCache:
    """Of one layer: as many tokens as it will ever see at once. The next takes the place of the oldest.

    The token at position p lies at ``p % room``; a layer without a window has room for all, and nothing rolls.
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: torch.dtype, device: torch.device | str) -> None:
        self.room = shape[2]
        self.keys = torch.zeros(shape, dtype=dtype, device=device)  # (B, K, room, h)
        self.values = torch.zeros_like(self.keys)

    def extend(self, start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take in T tokens from position `start` on; returns all that they may see, as `positions` lists them."""
        end = start + keys.shape[2]
        if end <= self.room:  # nothing rolls yet
            self.keys[:, :, start:end], self.values[:, :, start:end] = keys, values
            return self.keys[:, :, :end], self.values[:, :, :end]
        if end - start == 1:
            self.keys[:, :, start % self.room], self.values[:, :, start % self.room] = keys[:, :, 0], values[:, :, 0]
            return self.keys, self.values
        before = self.positions(start, 0).to(keys.device) % self.room
        seen = (
            torch.cat((self.keys[:, :, before], keys), dim=2),
            torch.cat((self.values[:, :, before], values), dim=2),
        )
        last = torch.arange(max(start, end - self.room), end, device=keys.device)
        self.keys[:, :, last % self.room] = keys[:, :, last - start]
        self.values[:, :, last % self.room] = values[:, :, last - start]
        return seen

    def positions(self, start: int, count: int) -> Tensor:
        """Positions of what `extend` returns for `count` tokens from `start` on, in its order."""
        end = start + count
        if count == 1 and end > self.room:
            slots = torch.arange(self.room)
            return end - 1 - (end - 1 - slots) % self.room
        return torch.arange(0 if end <= self.room else max(0, start - self.room), end)


class StillLayerCache(LayerCache):
    """Takes in one token at a time, and always shows all of its room, so that no shape depends on how full it is."""

    def __init__(self, filled: LayerCache) -> None:
        self.room, self.keys, self.values = filled.room, filled.keys, filled.values

    def extend(self, start: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the token at position `start`, (); returns the whole room."""
        slot = (start % self.room)[None]
        return self.keys.index_copy_(2, slot, keys), self.values.index_copy_(2, slot, values)

    def positions(self, start: Tensor, count: int) -> Tensor:
        """Positions in the room with the token at `start`; below 0 where nothing was written yet."""
        slots = torch.arange(self.room, device=start.device)
        return start - (start - slots) % self.room


class Cache:
    """Of a whole decoder, allocated once for sequences of up to `length` tokens."""

    gaps = False  # whether its layers show more than was written

    def __init__(
        self, c: DecoderConfig, batch: int, length: int, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        self.read: int | Tensor = 0  # tokens of each sequence so far, padding included
        self.length = length
        rooms = [min(c.window(layer) or length, length) for layer in range(c.layers)]
        self.layers = [LayerCache((batch, c.kv_count, room, c.head_size), dtype, device) for room in rooms]

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.layers)


class StillCache(Cache):
    """Goes on where another is, in the same memory, one token at a time: a step that is compiled once for all of them."""

    gaps = True

    def __init__(self, filled: Cache) -> None:
        self.length, device = filled.length, filled.layers[0].keys.device
        self.read = torch.tensor(filled.read, device=device)  # (), since a number would be compiled in
        self.layers = [StillLayerCache(layer) for layer in filled.layers]
