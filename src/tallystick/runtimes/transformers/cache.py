"""KV cache and recurrent states of transformers models, for one sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.core.anatomy import Attending, Recurrence, Recurring
from tallystick.runtimes import Cached, Carried
from tallystick.runtimes.transformers.traits import USUAL, AttentionTraits


def cached(attending: Sequence[Attending], sequence: int, traits: AttentionTraits = USUAL) -> tuple[Cached, ...]:
    """Return the KV cache of one sequence, as transformers' `DynamicCache` holds it.

    Keys and values take 2 · KV heads · size elements in each layer for each token (Shazeer 2019,
    "Fast Transformer Decoding", section 2.3). Latent attention caches its compressed vector and the
    shared rotary key (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.4). A layer that reuses another
    layer's keys and values caches nothing. A sliding window keeps the `window` - 1 positions before
    the next token. Indexers cache their keys, and compressors their compressed tokens, in addition.

    Args:
        attending: the attention layers.
        sequence: tokens read so far.
        traits: how the model type's attention runs.
    """
    found: dict[Cached, int] = {}
    for one in attending:
        for window, layers in one.windows().items():
            width = None if window is None or traits.keeps_full_cache else int(window)
            for what in _of_each(one, width, sequence + int(one.heads.ahead)):
                found[what] = found.get(what, 0) + int(layers)
    return tuple(alike._replace(layers=layers) for alike, layers in found.items())


def _of_each(one: Attending, window: int | None, sequence: int) -> Iterator[Cached]:
    """Yield the cache of each layer with this attention and window."""
    heads = one.heads
    if heads.kept:
        positions = sequence if window is None else min(sequence, max(window - 1, 0))
        yield Cached(one.name, 0, window, positions, int(heads.kept))
    if heads.indexer and heads.indexer.size:
        size, wide = int(heads.indexer.size), heads.indexer.wide
        yield Cached(one.name, 0, None, sequence, size, "indexer keys", wide)
    if heads.compressor:
        size, overlapping = int(heads.compressor.size), heads.compressor.overlapping
        groups, rest = divmod(sequence, int(heads.compressor.rate))
        yield Cached(one.name, 0, None, groups, size, "compressed tokens")
        # Each token with a gate; twice if it will also be read with the next group.
        yield Cached(one.name, 0, None, rest, 2 * size * (1 + overlapping), "tokens not yet compressed")
        if overlapping and groups:
            yield Cached(one.name, 0, None, int(heads.compressor.rate), 2 * size, "last compressed tokens")


def carried(recurring: Sequence[Recurring]) -> tuple[Carried, ...]:
    """Return the recurrent states of one sequence; their size does not depend on its length.

    They are the last inputs of the convolution, and a state for each channel, or a keys × values
    state for each head.
    """
    found: dict[tuple[str, Recurrence], int] = {}
    for one in recurring:
        alike = one.name, one.keeps._replace(inputs=int(one.keeps.inputs), state=int(one.keeps.state), runs=None)
        found[alike] = found.get(alike, 0) + int(one.layers)
    return tuple(Carried(name, layers, keeps) for (name, keeps), layers in found.items())
