"""A search for small files that cost much: CPU time and peak memory are what it climbs by.

    pip install -e ".[test]"
    python tests/support/fuzz_cost.py derivation --minutes 5
    python tests/support/fuzz_cost.py all --minutes 60

From inputs that are counted it makes others, as an attacker would: pieces are repeated, nested,
lengthened, numbered anew. What costs more than the costliest so far is kept and changed further. At
the end the costliest is grown step by step, and each size is counted by the command line in a
process of its own, which has 10 s of CPU and 200 MB above what is read. The tests do the same with
a few hundred inputs; there calls of functions stand for time, so that each run is the same.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import importlib.util
import json
import random
import re
import signal
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import fuzz
import tallystick
from hostile import refusal
from repository import ROOT

SMALL = 1 << 15  # bytes of an input while it is searched for
LARGEST = 99_000_000  # of one that is grown
PATIENCE = 30  # seconds of one input
SECONDS, MEMORY = 10.0, 200_000_000  # what an input may take


class Cost(NamedTuple):
    """What reading an input takes."""

    time: float  # seconds of the processor, or calls of functions
    memory: int  # bytes at the peak

    def share(self, time: float, memory: int) -> float:
        """The larger part of what it may take."""
        return max(self.time / time, self.memory / memory)


class Subject(NamedTuple):
    """A reader, and how an input becomes what it reads."""

    first: Callable[[Path], list[bytes]]
    put: Callable[[Path, bytes], object]  # into a folder
    words: Callable[[Path], list[str]]  # of the command line that reads it
    read: Callable[[Path], object]  # the same in this process
    data: int = 0  # bytes behind the header that a file claims


def _framed(folder: Path, content: bytes) -> None:
    """A header of safetensors with its length before it, and as much data as its last tensor ends
    at.
    """
    ends = re.findall(rb"data_offsets\":\s*\[\s*\d{1,9}\s*,\s*(\d{1,12})", content[-4096:])
    with (folder / "a.safetensors").open("wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        file.truncate(8 + len(content) + int(ends[-1] if ends else 0))


def _gguf(folder: Path, content: bytes) -> None:
    """GGUF from JSON: ``[[[name, [sizes], type], …], [[key, text], …]]``; its counts are right."""
    try:
        tensors, keys = json.loads(content)
        head = b"".join(
            struct.pack("<Q", len(key.encode()))
            + key.encode()
            + struct.pack("<IQ", 8, len(value.encode()))
            + value.encode()
            for key, value in keys
        )
        for name, sizes, kind in tensors:
            head += struct.pack("<Q", len(name.encode())) + name.encode() + struct.pack("<I", len(sizes))
            head += b"".join(struct.pack("<Q", size) for size in sizes) + struct.pack("<IQ", kind, 0)
        content = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + head
    except (ValueError, TypeError, AttributeError, struct.error, RecursionError, UnicodeError):
        pass  # a change that is no such list: read as it is
    with (folder / "a.gguf").open("wb") as file:
        file.write(content)
        file.truncate(len(content) + 4096)


def _subject(name: str) -> Subject:
    """A reader of `fuzz.py`, whose inputs are put as there."""
    reader = fuzz.READERS[name]

    def source(folder: Path) -> Path:
        return folder if reader.of_folder or name == "index" else folder / reader.file

    return Subject(
        reader.first,
        lambda folder, content: fuzz.put(reader, folder / reader.file, content),
        lambda folder: ["count", str(source(folder))],
        lambda folder: refusal(source(folder)),
    )


def _counted(name: str, first: list[bytes], put: Callable[[Path, bytes], object], file: str = "") -> Subject:
    return Subject(
        lambda _: first,
        put,
        lambda folder: ["count", str(folder / file)],
        lambda folder: refusal(folder / file),
    )


def _written(file: str) -> Callable[[Path, bytes], object]:
    return lambda folder, content: (folder / file).write_bytes(content)


def _beside_gpt2(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_text(
        '{"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 9}'
    )
    (folder / "tokenizer.json").write_bytes(content)


def _check(folder: Path) -> None:
    with contextlib.suppress(tallystick.BadInput):
        tallystick.check(folder / "a.md", against="gpt2")


_ENTRY = '"h.{n}.w":{{"dtype":"F32","shape":[{n},2],"data_offsets":[{a},{b}]}}'
_HEADER = "{" + ",".join(_ENTRY.format(n=n, a=(n * n - n) * 4, b=(n * n + n) * 4) for n in (1, 2, 3)) + "}"
_NOTED = '{"__metadata__":{"format":"pt"},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
_TEXT = """d = 5
Token embedding: 50257 × 768 = 38,597,376
d d ; = 5
Attention (one layer): 4 × 768² + 4 × 768 ≈ 2.36M (see table 2)
| MLP | 2 × 768 × 3072 | 4,718,592 |
$$\\frac{1}{2} \\times \\text{layers} = 3 + (2 - 1)^{2}$$
+ Positions and more: 1024 * 768 =
786,432
Total: 124,439,808 parameters, **in all**, as _said_ above - not more.
"""
SUBJECTS: dict[str, Subject] = {
    **{name: _subject(name) for name in fuzz.READERS if name not in ("safetensors", "gguf")},
    "safetensors": _counted("safetensors", [_HEADER.encode(), _NOTED.encode()], _framed, "a.safetensors"),
    "gguf": _counted("gguf", [b'[[["blk.1.w",[4,2],0]],[["general.architecture","llama"]]]'], _gguf, "a.gguf"),
    "tokenizer": _counted(
        "tokenizer",
        [
            b'{"added_tokens":[{"id":1,"content":"a"}],"model":{"vocab":{"a":0,"b":1}}}',
            b'{"vocab":[["a",-1.5],["b",0]]}',
        ],
        _beside_gpt2,
    ),
    "toml": _counted("toml", [b'model_type = "gpt2"\n[a.b]\nc = [1, 2]\n'], _written("a.toml"), "a.toml"),
    "derivation": Subject(
        lambda _: [
            b"d = 5\nd d (1) ; = 5\n",
            _TEXT.encode(),
            *(line.encode() + b"\n" for line in _TEXT.splitlines() if "=" in line),
        ],
        _written("a.md"),
        lambda folder: ["check", str(folder / "a.md"), "--against", "gpt2"],
        _check,
    ),
}


# -- other inputs ---------------------------------------------------------------------------------

_PIECES = (
    *(b"()", b"[]", b"{}", b'""', b"$$", b"**", b"__", b"||", b"\\text{}", b"\\frac{}{}", b"^{}", b"_{}"),
    *(b"(", b"[", b"{", b"-", b"+", b"=", b" ", b".", b"1", b"a", b"\n", b"\t", b"9" * 300, b"\\u0041", b"\\n"),
    *("😀".encode(), "é".encode(), b"1,000", b"1.000", b"norm", b"a_", b"h.0.", b"experts."),
)
_NUMBER = re.compile(rb"\d+")
# What can be repeated so that the whole stays what it is: a member of an object, an item of a list,
# a line.
_UNIT = re.compile(rb'"[^"\n]*"\s*:\s*(?:\{[^{}]*\}|\[[^\[\]]*\]|"[^"]*"|\d+)|\[[^\[\]]*\]|[^\n]+\n')
_EDGES = re.compile(rb"[,\n{}\[\]();. ]")


def changed(content: bytes, draw: random.Random, most: int) -> bytes:
    """An input as an attacker might change it at one place, of `most` bytes at most."""
    if draw.random() < 0.4 and (units := [*_UNIT.finditer(content)]):
        unit = draw.choice(units)
        times = min(2 ** draw.randrange(1, 13), max(1, (most - len(content)) // len(unit[0])))
        new = repeated(unit[0], times, draw.choice(("alike", "named", "numbered")))
        return (content[: unit.start()] + new + content[unit.end() :])[:most]
    edges = [0, *(edge.end() for edge in _EDGES.finditer(content)), len(content)]
    if draw.random() < 0.3:
        start, end = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    else:
        first = draw.randrange(len(edges))
        start, end = edges[first], edges[min(len(edges) - 1, first + draw.choice((1, 1, 2, 3, 5, 8)))]
    piece, times = content[start:end], 2 ** draw.randrange(1, 11)
    times = min(times, max(1, (most - len(content)) // max(1, len(piece))))
    match draw.randrange(8):
        case 0 | 1:  # repeated
            new = piece * times
        case 2:  # repeated, each with numbers of its own
            new = b"".join(_NUMBER.sub(lambda old, n=n: b"%d" % (int(old[0][:9]) + n), piece) for n in range(times))
        case 3:  # nested
            opened, closed = draw.choice((b"()", b"[]", b"{}", (b"^{", b"}"), (b"\\text{", b"}"), (b'{"a":', b"}")))
            pair = (opened, closed) if isinstance(opened, bytes) else (bytes([opened]), bytes([closed]))
            depth = min(times, 120)
            new = pair[0] * depth + piece + pair[1] * (depth if draw.random() < 0.7 else 0)
        case 4:  # one letter of it, again and again
            at = draw.randrange(len(piece)) if piece else 0
            new = piece[:at] + piece[at : at + draw.choice((1, 1, 2, 3))] * times + piece[at:]
        case 5:  # something put in
            new = piece + draw.choice(_PIECES) * draw.choice((1, 1, times))
        case 6:  # left out
            new = b""
        case _:  # a piece of elsewhere
            other = draw.randrange(len(content) + 1)
            new = piece + content[other : other + draw.choice((1, 4, 30, 200))]
    return (content[:start] + new + content[end:])[:most]


def repeated(unit: bytes, times: int, how: str) -> bytes:
    """A unit again and again: alike, with names of its own, or with all its numbers raised."""
    between = b"" if unit.endswith(b"\n") else b","
    if how == "alike":
        return between.join([unit] * times)
    if how == "named":
        return between.join(unit.replace(b'"', b'"%d' % n, 1) for n in range(times))
    return between.join(_NUMBER.sub(lambda old, n=n: b"%d" % (int(old[0][:9]) + n), unit) for n in range(times))


# -- the search -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds_of(work: Callable[[], object]) -> Cost:
    """CPU time, and then, in a second run, peak memory."""
    start = time.process_time()
    try:
        with _in_time():
            work()
    except TimeoutError:
        return Cost(PATIENCE, 0)
    seconds = time.process_time() - start
    tracemalloc.start()
    try:
        with _in_time():
            work()
    except TimeoutError:
        return Cost(PATIENCE, 0)
    finally:
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return Cost(seconds, memory)


def calls_of(work: Callable[[], object]) -> Cost:
    """Calls of functions, which are as many in each run, and peak memory.

    What is imported at first is no cost of the input: the work is then done again.
    """
    imported = len(sys.modules)
    cost = _calls_of(work)
    return cost if len(sys.modules) == imported else _calls_of(work)


def _calls_of(work: Callable[[], object]) -> Cost:
    profile = cProfile.Profile()
    tracemalloc.start()
    try:
        with profile:
            work()
    finally:
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    calls = sum(entry.callcount for entry in profile.getstats())
    return Cost(calls, memory)


def costliest(
    subject: Subject,
    folder: Path,
    measure: Callable[[Callable[[], object]], Cost],
    until: Callable[[int], bool],
    *,
    seed: int,
    time: float,
    memory: int,
    most: int = SMALL,
) -> tuple[bytes, Cost]:
    """The costliest input that is found, and what it takes.

    Args:
        subject: what is read.
        folder: where inputs are put.
        measure: what a piece of work takes.
        until: whether so many inputs are enough.
        seed: of what is drawn.
        time: what an input may take, in the unit of `measure`.
        memory: the same in bytes.
        most: bytes of an input.
    """
    draw = random.Random(seed)

    def cost(content: bytes) -> Cost:
        subject.put(folder, content)
        return measure(lambda: subject.read(folder))

    found = [(content, cost(content)) for content in subject.first(folder)]
    kept = list(found)
    done = 0
    while not until(done):
        done += 1
        content = draw.choice(kept)[0]
        for _ in range(draw.choice((1, 1, 2, 4))):
            content = changed(content, draw, most) or b" "
        taken = cost(content)
        worst = min(kept, key=lambda one: one[1].share(time, memory))
        if len(kept) < len(found) + 8:
            kept.append((content, taken))
        elif taken.share(time, memory) > worst[1].share(time, memory):
            kept[kept.index(worst)] = (content, taken)
    return max(kept, key=lambda one: one[1].share(time, memory))


# -- the command line -----------------------------------------------------------------------------


def _attacks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attacks_run", ROOT / "attacks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["attacks_run"] = module
    spec.loader.exec_module(module)
    return module


def grown(subject: Subject, content: bytes) -> Iterator[tuple[int, Any]]:
    """The input at larger and larger sizes, a unit of it repeated: its bytes, and what the command
    line did.
    """
    run = _attacks().run
    units = [*_UNIT.finditer(content)]
    unit = units[len(units) // 2] if units else re.compile(rb"(?s).+").match(content)
    assert unit is not None
    times = 1
    while len(content) + times * len(unit[0]) <= LARGEST:
        larger = content[: unit.start()] + repeated(unit[0], times, "named") + content[unit.end() :]
        with TemporaryDirectory() as folder:
            subject.first(Path(folder))  # what lies beside it
            subject.put(Path(folder), larger)
            yield len(larger), run(subject.words(Path(folder)), Path(folder))
        times *= 8


def main() -> int:
    """Search one reader, or each in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", choices=[*SUBJECTS, "all"])
    parser.add_argument("--minutes", type=float, default=5, help="for all readers together")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", type=Path, default=Path(), help="the folder in which the costliest inputs are left")
    options = parser.parse_args()
    names = list(SUBJECTS) if options.reader == "all" else [options.reader]
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    broken = 0
    for name in names:
        subject, end = SUBJECTS[name], time.monotonic() + 60 * options.minutes / len(names)
        with TemporaryDirectory() as home:
            done = 0

            def enough(count: int, end: float = end) -> bool:
                nonlocal done
                done = count
                return time.monotonic() > end

            content, cost = costliest(subject, Path(home), seconds_of, enough, seed=seed, time=SECONDS, memory=MEMORY)
        kept = options.keep / f"costly-{name}"
        kept.write_bytes(content)
        print(f"{name}: seed {seed}, {done} inputs; the costliest, {kept}, has {len(content):,} bytes:")  # noqa: T201
        print(f"  {cost.time:.2f} s, {cost.memory:,} bytes", flush=True)  # noqa: T201
        start = _attacks().run(["--version"], Path())
        for size, outcome in grown(subject, content):
            above = outcome.memory - start.memory - size
            over = outcome.seconds > start.seconds + SECONDS or above > MEMORY or outcome.code not in (0, 1, 2)
            broken += over
            said = (outcome.errors or outcome.output).partition("\n")[0][-90:]
            took = f"{outcome.seconds:.2f} s, {above:,} bytes above it, exit {outcome.code}"
            print(f"  {size:>12,} bytes: {took}: {said}{'  OVER' * over}", flush=True)  # noqa: T201
            if outcome.seconds > 6 * SECONDS:
                break
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
