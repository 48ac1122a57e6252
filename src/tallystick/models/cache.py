"""The KV cache: keys and values of earlier tokens, with rolling slots for sliding windows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tallystick.models.config import DecoderConfig


class LayerCache:
    """Keys and values of one layer; with a sliding window the oldest token is overwritten.

    The token at position p is in slot ``p % room``. Without a window there is room for all tokens.
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: torch.dtype, device: torch.device | str) -> None:
        self.room: int = shape[2]
        self.keys: Tensor = torch.zeros(shape, dtype=dtype, device=device)  # (B, K, room, h)
        self.values: Tensor = torch.zeros_like(self.keys)

    def extend(self, start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append T tokens, and return the keys and values that they may see.

        Args:
            start: position of the first token.
            keys: (B, K, T, h).
            values: (B, K, T, h).

        Returns:
            Keys and values, each (B, K, S, h), at the positions that `positions` returns.
        """
        end = start + keys.shape[2]
        if end <= self.room:  # no token is overwritten yet
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
        """Return the positions of the keys that `extend` returns, in the same order.

        Args:
            start: position of the first of the new tokens.
            count: number of new tokens.

        Returns:
            (S,), on the CPU.
        """
        end = start + count
        if count == 1 and end > self.room:
            slots = torch.arange(self.room)
            return end - 1 - (end - 1 - slots) % self.room
        return torch.arange(0 if end <= self.room else max(0, start - self.room), end)


class StillLayerCache(LayerCache):
    """A layer cache for one token at a time that always returns every slot: static shapes."""

    def __init__(self, filled: LayerCache) -> None:
        self.room, self.keys, self.values = filled.room, filled.keys, filled.values

    def extend(self, start: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append the token at position `start`, a scalar tensor; return every slot."""
        slot = (start % self.room)[None]
        return self.keys.index_copy_(2, slot, keys), self.values.index_copy_(2, slot, values)

    def positions(self, start: Tensor, count: int) -> Tensor:
        """Return the position in each slot, with the token at `start`; below 0 if still empty."""
        slots = torch.arange(self.room, device=start.device)
        return start - (start - slots) % self.room


class Cache:
    """The KV cache of a decoder, allocated once for sequences of up to `length` tokens."""

    gaps = False  # whether its layers return slots that are still empty

    def __init__(
        self, c: DecoderConfig, batch: int, length: int, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        self.read: int | Tensor = 0  # tokens of each sequence so far, padding included
        self.length: int = length
        rooms = [min(c.window(layer) or length, length) for layer in range(c.layers)]
        self.layers: Sequence[LayerCache] = [
            LayerCache((batch, c.kv_count, room, c.head_size), dtype, device) for room in rooms
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.layers)


class StillCache(Cache):
    """A static view of a filled cache, for one token at a time: the step compiles only once."""

    gaps = True

    def __init__(self, filled: Cache) -> None:
        self.length, device = filled.length, filled.layers[0].keys.device
        self.read = torch.tensor(
            filled.read, device=device
        )  # a scalar tensor: torch.compile would specialise on an int
        self.layers = [StillLayerCache(layer) for layer in filled.layers]
