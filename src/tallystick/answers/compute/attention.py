"""FLOPs of attention itself: queries with keys, attention weights with values, index scores."""

from __future__ import annotations

from collections.abc import Iterator

from tallystick.answers.compute.gradients import Gradients
from tallystick.answers.compute.products import Product
from tallystick.core.anatomy import Attending, Indexer, Mixing
from tallystick.runtimes import Running

PALM = "Chowdhery et al. 2022, PaLM, appendix B"


def attention_products(
    one: Attending, how: Running, gradients: Gradients, batch: int, sequence: int
) -> Iterator[Product]:
    """Yield query-key and weight-value products, over the pairs that the runtime multiplies.

    Args:
        one: consecutive layers with the same attention.
        how: the runtime, which decides what pairs of positions are multiplied.
        gradients: what is trained.
        batch: sequences per pass.
        sequence: tokens per sequence.
    """
    first, count = gradients.layers(one.start, one.layers)
    heads, trained = one.heads, one._replace(start=first, layers=count).windows()
    if heads.indexer and heads.indexer.heads:
        yield _choosing(one, heads.indexer, batch, sequence)
    for window, layers in one.windows().items():
        pairs = batch * layers * int(heads.queries)
        most = heads.indexer.chosen if heads.indexer else window
        needed = visible(sequence, most, chunked=heads.chunked) if heads.causal else sequence**2
        multiplied = how.pairs(heads, window, sequence)
        positions = f"{sequence:,} × {sequence:,}" if multiplied == sequence**2 else f"{multiplied:,} pairs"
        factors = f"{batch:,} × {layers:,} layers × {int(heads.queries):,} heads × {positions}"
        for part, what, size in (
            ("attention_scores", "queries with keys", int(heads.size)),
            *([("attention_scores", "queries with relative positions", int(heads.size))] if heads.relative else []),
            ("attention_values", "attention weights with values", int(heads.value_size)),
        ):
            yield Product(
                part,
                f"{one.name}: {what}" + (f", window {int(window):,}" if window else ""),
                2 * pairs * multiplied * size,
                4 * batch * trained.get(window, 0) * int(heads.queries) * multiplied * size,
                2 * pairs * needed * size,
                f"2 × {factors} × {size:,}",
                PALM,
            )


def _choosing(one: Attending, indexer: Indexer, batch: int, sequence: int) -> Product:
    """Return the products of an indexer's queries with its keys, which have no gradients."""
    heads, layers = int(indexer.heads), int(one.layers)
    size = int(indexer.size) + indexer.weighed
    each = 2 * batch * layers * heads * size
    factors = f"{batch:,} × {layers:,} layers × {heads:,} heads × {sequence:,} × {sequence:,}"
    return Product(
        "attention_scores",
        f"{one.name}: index scores",
        each * sequence**2,
        0,
        each * visible(sequence, None),
        f"2 × {factors} × {size:,}",
        "DeepSeek-AI 2025, DeepSeek-V3.2, section 2.1",
    )


def mixing_product(one: Mixing, gradients: Gradients, batch: int, sequence: int) -> Product:
    """Return the products that a layer takes in addition to its weights and its attention.

    Args:
        one: the layers.
        gradients: what is trained.
        batch: sequences per pass.
        sequence: tokens per sequence.
    """
    _, trained = gradients.layers(one.start, one.layers)
    each = 2 * batch * sequence * one.multiplications
    factors = f"2 × {batch * sequence:,} tokens × {one.layers:,} × {one.multiplications:,}"
    return Product(
        "other",
        f"{one.name}: products of activations",
        one.layers * each,
        2 * trained * each,
        one.layers * each,
        factors,
    )


def visible(sequence: int, window: int | None, *, chunked: bool = False) -> int:
    """Return the number of pairs of a position and a position that it attends to.

    A position attends to itself and to the positions before it, within its window or its chunk.

    Args:
        sequence: positions of the sequence.
        window: positions that one position attends to, itself included; None is all.
        chunked: whether `window` is the length of disjoint chunks.

    >>> visible(4, None), visible(4, 2), visible(4, 9), visible(4, 3, chunked=True)
    (10, 7, 10, 7)
    """
    seen = sequence if window is None else min(int(window), sequence)
    if chunked and seen:
        chunks, rest = divmod(sequence, seen)
        return (chunks * seen * (seen + 1) + rest * (rest + 1)) // 2
    return seen * (seen + 1) // 2 + (sequence - seen) * seen
