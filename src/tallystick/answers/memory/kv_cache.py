"""What an inference run caches: keys and values, and the states of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.number_formats import CACHED, cache_bytes, cache_source, scales_of_tensors
from tallystick.core.dtypes import BITS
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.runtimes import Cached, Running


def cache_lines(ledger: Ledger, running: Running, form: str, computed: str, batch: int, sequence: int) -> list[Line]:
    """Return a line for each kind of cached vectors.

    Args:
        ledger: the model.
        running: what the runtime caches of it.
        form: the cache's format.
        computed: dtype of products, and of the scales of a quantised cache.
        batch: sequences.
        sequence: tokens of each.

    Raises:
        BadInput: for a latent vector in a format that no implementation has for it.
    """
    attending = ledger.model.attending
    if form in CACHED and any(one.heads.latent is not None for one in attending):
        raise BadInput(
            f"{ledger.source} caches one latent vector, which no implementation quantises to {form}: use"
            " kv_dtype fp8 or 16 bits",
            code="unsupported",
        )
    return [
        _cached(one, "float32" if one.wide else form, computed, batch) for one in running.cached(attending, sequence)
    ]


def _cached(one: Cached, form: str, computed: str, batch: int) -> Line:
    source = "Shazeer 2019, Fast Transformer Decoding, section 2.3"
    width = f"{BITS[form] // 8} B" if form in BITS and form not in CACHED else form
    return Line(
        "kv_cache",
        f"{one.what} in {form}" + (f", window {one.window:,}" if one.window else ""),
        cache_bytes(batch * one.total, form, computed) + scales_of_tensors(2 * one.layers, form),
        f"{batch:,} × {one.layers:,} layers × {one.positions:,} tokens × {one.elements:,} × {width}"
        + (f" + {one.layers:,} layers × 2 scales × 4 B" if scales_of_tensors(1, form) else ""),
        cache_source(form, source),
    )


def state_lines(ledger: Ledger, running: Running, form: str, batch: int) -> Iterator[Line]:
    """Yield states of a fixed size, for any sequence length; no implementation quantises them."""
    for one in running.carried(ledger.model.recurring):
        for what, elements, dtype in (
            ("convolution states", one.keeps.inputs, "float32" if one.keeps.wide_inputs else form),
            ("recurrent states", one.keeps.state, "float32" if one.keeps.wide else form),
        ):
            if not elements:
                continue
            width = BITS[dtype] // 8
            yield Line(
                "kv_cache",
                f"{what} in {dtype}",
                batch * one.layers * elements * width,
                f"{batch:,} × {one.layers:,} layers × {elements:,} × {width} B",
                one.keeps.source,
            )


def bytes_per_token(ledger: Ledger, running: Running, form: str, computed: str) -> int | None:
    """Return the bytes that one more token of one sequence adds, while no window is full."""
    model = ledger.model
    if not (model.attending or model.recurring):
        return None
    first, second = (
        {
            wide: sum(one.total for one in running.cached(model.attending, tokens) if one.wide == wide)
            for wide in (False, True)
        }
        for tokens in (1, 2)
    )
    wide = cache_bytes(second[True] - first[True], "float32", computed)
    return cache_bytes(second[False] - first[False], form, computed) + wide


def cache_notes(ledger: Ledger, form: str, computed: str) -> list[str]:
    """Return what must be known of a cache in `form`, or why none is counted."""
    model = ledger.model
    if not (model.attending or model.recurring):
        why = model.irregular or "the source does not describe attention (a native config does)"
        return [f"no KV cache is counted: {why}"]
    notes = []
    if form in CACHED:
        notes.append(f"the last tokens (fewer than 128) stay in {computed} until they are quantised")
    if any(not one.heads.causal for one in model.attending):
        notes.append("no KV cache: attention is bidirectional")
    windowed = any(window is not None for one in model.attending for window in one.windows())
    if (form in CACHED or scales_of_tensors(1, form)) and (windowed or model.recurring):
        notes.append(f"transformers has no {form} cache for sliding-window or recurrent layers")
    return notes
