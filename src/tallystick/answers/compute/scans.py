"""FLOPs of recurrent scans, computed as matrix products within and between chunks."""

from __future__ import annotations

from collections.abc import Iterator

from tallystick.answers.compute.products import Product
from tallystick.core.anatomy import ChunkedScan, DeltaRule, Recurring, SequentialScan

SSD = "Dao and Gu 2024, Transformers are SSMs, section 6"
DELTA = "Yang et al. 2024, Parallelizing Linear Transformers with the Delta Rule, section 3"


def scan(one: Recurring, learned: int, batch: int, sequence: int) -> Iterator[Product]:
    """Yield the matrix products of the scans in these layers; none if the run is not described.

    Args:
        one: the layers.
        learned: how many of the layers have scans with gradients.
        batch: sequences per pass.
        sequence: tokens per sequence.
    """
    runs = one.keeps.runs
    if isinstance(runs, ChunkedScan):
        yield from _scanning(one, runs, learned, batch, sequence)
    elif isinstance(runs, DeltaRule):
        yield from _correcting(one, runs, learned, batch, sequence)
    elif isinstance(runs, SequentialScan) and runs.multiplications:
        layers, each = int(one.layers), 2 * batch * sequence * int(runs.multiplications)
        factors = f"2 × {batch * sequence:,} tokens × {layers:,} layers × {int(runs.multiplications):,}"
        yield Product(
            "ssm",
            f"{one.name}: states read",
            layers * each,
            2 * int(learned) * each,
            layers * each,
            factors,
            one.keeps.source,
        )


def _seen(sequence: int, chunk: int) -> int:
    """Return the pairs of positions within chunks: each with itself and those before it."""
    whole, rest = divmod(sequence, chunk)
    return whole * (chunk * (chunk + 1) // 2) + rest * (rest + 1) // 2


def _scanning(one: Recurring, runs: ChunkedScan, learned: int, batch: int, sequence: int) -> Iterator[Product]:
    """Yield the products of Mamba 2.

    Within a chunk every position is multiplied with every other; the last chunk is padded. Each
    chunk gives a state, the states are carried on, and the carried states are read.
    """
    heads, size, state, chunk = int(runs.heads), int(runs.size), int(runs.rows), int(runs.chunk)
    chunks, seen = runs.chunks(sequence), _seen(sequence, chunk)
    carried = chunks + 1  # includes the state before the first chunk
    for what, factors, needed in (
        ("C with B, within chunks", (chunks, chunk, chunk, state), seen * state),
        ("weights with inputs, within chunks", (chunks, chunk, chunk, size), seen * size),
        ("inputs into states", (chunks, chunk, state, size), sequence * state * size),
        ("states from chunk to chunk", (carried, carried, state, size), chunks * state * size),
        ("states read by C", (chunks, chunk, state, size), sequence * state * size),
    ):
        each = 2 * batch * heads
        for factor in factors:
            each *= factor
        numbers = " × ".join(f"{factor:,}" for factor in factors)
        yield Product(
            "ssm",
            f"{one.name}: {what}",
            each * int(one.layers),
            2 * each * int(learned),
            2 * batch * heads * int(one.layers) * needed,
            f"2 × {batch:,} × {int(one.layers):,} layers × {heads:,} heads × {numbers}",
            SSD,
        )


def _correcting(one: Recurring, runs: DeltaRule, learned: int, batch: int, sequence: int) -> Iterator[Product]:
    """Yield the products of Gated DeltaNet.

    Within a chunk every key is multiplied with every other, for the corrections of the state. The
    corrections solve a triangular system: the solve is not a matrix product, but its gradients are.
    Before the first chunk the state is 0 without a gradient; the last chunk's state is not read.
    """
    heads, keys, values, chunk = int(runs.heads), int(runs.keys), int(runs.values), int(runs.chunk)
    chunks, seen = -(-sequence // chunk), _seen(sequence, chunk)
    pairs, written = chunks * chunk * chunk, chunk * keys * values
    for what, forward, backward, needed in (
        ("keys with keys, within chunks", pairs * keys, 2 * pairs * keys, seen * keys),
        ("queries with keys, within chunks", pairs * keys, 2 * pairs * keys, seen * keys),
        ("corrections, within chunks", 0, pairs * (keys + values), 0),
        ("states read by keys", chunks * written, (2 * chunks - 1) * written, sequence * keys * values),
        ("states read by queries", chunks * written, (2 * chunks - 1) * written, sequence * keys * values),
        ("weights with values, within chunks", pairs * values, 2 * pairs * values, seen * values),
        ("values into states", chunks * written, 2 * (chunks - 1) * written, sequence * keys * values),
    ):
        each, layers = 2 * batch * heads, int(one.layers)
        yield Product(
            "ssm",
            f"{one.name}: {what}",
            layers * each * forward,
            int(learned) * each * backward,
            layers * each * needed,
            f"2 × {batch:,} × {layers:,} layers × {heads:,} heads × {forward:,}",
            DELTA,
        )
