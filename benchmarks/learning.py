"""Whether the `nano` preset learns: its bits per byte beside what counting bytes gives, on the same
validation text.

    python benchmarks/learning.py [FOLDER]      # minutes on a CPU

The counts are of the training text alone. The unigram model gives each byte its share; the 3-gram
model gives it its share after the two bytes before it, mixed with the shares after one and after
none (Jelinek and Mercer 1980), by weights that are the best of a few on the validation text itself:
a favour to it.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

import numpy

from tallystick.training.config import configured
from tallystick.training.corpus.corpus import Tokens
from tallystick.training.run import prepared

SYMBOLS = 257  # bytes, and the end of a text


def ids_of(tokens: Tokens, most: int) -> numpy.ndarray:
    """The first ids of a split."""
    return numpy.concatenate([numpy.asarray(shard) for shard in tokens._shards])[:most].astype(numpy.int64)


def shares(ids: numpy.ndarray, before: int) -> numpy.ndarray:
    """Counts of each symbol after each context of `before` symbols, made shares; 0 where a context
    never came.
    """
    count = len(ids) - before
    context = (
        sum(ids[place : place + count] * SYMBOLS ** (before - 1 - place) for place in range(before)) if before else 0
    )
    joint = numpy.bincount(context * SYMBOLS + ids[before:], minlength=SYMBOLS ** (before + 1)).astype(numpy.float32)
    table = joint.reshape(-1, SYMBOLS)
    return table / numpy.maximum(table.sum(1, keepdims=True), 1)


def baselines(train: numpy.ndarray, held: numpy.ndarray) -> tuple[float, float]:
    """Bits per symbol of the unigram and the 3-gram model on `held`."""
    one, two, three = (shares(train, before) for before in range(3))
    uniform = 1 / SYMBOLS
    target, last, before = held[2:], held[1:-1], held[:-2]
    alone, after_one = one[0, target], two[last, target]
    after_two = three[before * SYMBOLS + last, target]
    unigram = -numpy.log2(0.999 * alone + 0.001 * uniform).mean()
    best = min(
        -numpy.log2(c * after_two + b * after_one + a * alone + 0.001 * uniform).mean()
        for c, b in itertools.product((0.5, 0.6, 0.7, 0.8, 0.9), (0.05, 0.1, 0.2, 0.3, 0.4))
        if (a := 0.999 - b - c) > 0
    )
    return float(unigram), float(best)


def main() -> int:
    """Train, count, compare."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "run"
        run = prepared(configured({"preset": "nano", "out": str(out), "eval_batches": 100}, {}, where="the benchmark"))
        found = {}
        for event in run.events():
            if event.kind == "evaluated":
                found = event.values
                print(f"step {event.step}: {found['bits_per_byte']:.3f} bits per byte")
        held = run.corpus.validation
        ids = ids_of(held, 100 * run.config.batch * run.config.sequence)
        unigram, trigram = (
            bits * held.bits_per_byte(1) * 0.6931471805599453
            for bits in baselines(ids_of(run.corpus.train, 10**9), ids)
        )
    print("| model | bits per byte |\n| --- | --: |")
    print(
        f"| unigram of bytes | {unigram:.3f} |\n| 3-gram of bytes | {trigram:.3f} |\n| nano, {run.config.steps} steps | {found['bits_per_byte']:.3f} |"
    )
    return int(not found["bits_per_byte"] < trigram < unigram)


if __name__ == "__main__":
    sys.exit(main())
