"""What a scan computes: the layers of Mamba 2, which read token after token, as products within and between chunks."""

from __future__ import annotations

from collections.abc import Iterator

from tallystick.anatomy import Recurring
from tallystick.answers.product import Product

SSD = "Dao and Gu 2024, Transformers are SSMs, section 6"


def scan(one: Recurring, learned: int, batch: int, sequence: int) -> Iterator[Product]:
    """The matrix products of the scans in these layers, as the chunked algorithm takes them; none where nobody said how.

    Within a chunk every position is multiplied with every other, the last chunk filled up to its length; then each
    chunk gives a state, all states are carried on, and what was carried is read.

    Args:
        one: the layers.
        learned: those of them whose scans have gradients.
        batch: sequences at once.
        sequence: tokens of each.
    """
    runs = one.keeps.runs
    if runs is None:
        return
    heads, size, state, chunk = int(runs.heads), int(runs.size), int(runs.rows), int(runs.chunk)
    chunks, (whole, rest) = runs.chunks(sequence), divmod(sequence, chunk)
    seen = whole * (chunk * (chunk + 1) // 2) + rest * (rest + 1) // 2
    carried = chunks + 1  # the state before the first chunk too
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
