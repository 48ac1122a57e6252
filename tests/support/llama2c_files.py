"""llama2.c's files as the tests write them."""

from __future__ import annotations

import struct

SIZES = {"d": 8, "inner": 12, "layers": 2, "heads": 4, "kv_heads": 2, "vocabulary": 10, "context": 6}


def llama2c(**changed: int) -> bytes:
    """A file by hand; a negative vocabulary stores the classifier."""
    d, inner, layers, heads, kv_heads, vocabulary, context = {**SIZES, **changed}.values()
    keys = d // heads * kv_heads
    block = 2 * d + 2 * d * d + 2 * d * keys + 3 * d * inner
    values = abs(vocabulary) * d * (2 if vocabulary < 0 else 1) + layers * block + d + context * (d // heads)
    return struct.pack("<7i", d, inner, layers, heads, kv_heads, vocabulary, context) + bytes(4 * values)


TINY = {"d": 4, "inner": 1, "layers": 1, "heads": 1, "kv_heads": 1, "vocabulary": 2, "context": 1}
