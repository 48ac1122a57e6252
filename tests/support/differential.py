"""Readers beside the libraries whose formats they read: whatever one accepts the other accepts, and
reads alike.

    python tests/support/differential.py torch 40000 [seed]

draws so many files and prints how often both accepted, both refused, or one alone, by the reason.
The tests do the same with fewer files. A reason that is not listed in `WE_REFUSE` or `WE_ACCEPT` is
a defect of ours.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from types import FrameType
from typing import Any, NamedTuple

from tallystick.errors import BadInput

Read = Callable[[Path], Any]
SECONDS = 0.5  # of the processor that a library may take for a file
MEMORY = 2_000_000_000  # bytes, likewise


class Pair(NamedTuple):
    """A reader of ours and the library's, which give equal things for a file that both accept."""

    file: str
    draw: Callable[[random.Random], bytes]
    ours: Read
    theirs: Read
    we_refuse: tuple[str, ...] = ()  # why we refuse what the library accepts, as patterns of our message
    we_accept: tuple[str, ...] = ()  # why the library refuses what we accept, as patterns of its message


class Tally:
    """What came of the files that were drawn."""

    def __init__(self) -> None:
        self.both = self.neither = 0
        self.we_refuse: Counter[str] = Counter()
        self.we_accept: Counter[str] = Counter()

    def __str__(self) -> str:
        alone = {"we alone refuse": self.we_refuse, "we alone accept": self.we_accept}
        lines = [f"{self.both:,} accepted by both, {self.neither:,} refused by both"]
        for what, reasons in alone.items():
            lines.append(f"{what} {reasons.total():,}")
            lines += [f"  {count:,} {reason}" for reason, count in reasons.most_common()]
        return "\n".join(lines)


def compared(pair: Pair, files: int, seed: int, folder: Path) -> Tally:
    """Draw files and read each by both.

    Raises:
        AssertionError: where both accept a file and read it differently, or one alone does for no
        listed reason. The file stays.
    """
    tally, draw, path = Tally(), random.Random(seed), folder / pair.file
    for _ in range(files):
        path.write_bytes(pair.draw(draw))
        found, why_not = _ours(pair.ours, path)
        expected, their_reason = _theirs(pair.theirs, path)
        if why_not is None and their_reason is None:
            assert found == expected, f"{path}: we read {found!r}, the library {expected!r}"
            tally.both += 1
        elif why_not is not None and their_reason is not None:
            tally.neither += 1
        elif why_not is not None:
            tally.we_refuse[
                _listed(pair.we_refuse, why_not, f"{path} is refused by us alone, and holds {expected!r}")
            ] += 1
        else:
            tally.we_accept[
                _listed(pair.we_accept, str(their_reason), f"{path} is accepted by us alone as {found!r}")
            ] += 1
    return tally


def _ours(read: Read, path: Path) -> tuple[Any, str | None]:
    """What we make of a file, or why we refuse it; any other error is a defect."""
    try:
        return read(path), None
    except BadInput as error:
        return None, str(error)


def _in_time(read: Read, path: Path) -> Any:
    """What the library reads; some take a count that the file claims for as long as it lasts."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, SECONDS / 10)  # again, where it is caught or ignored
    kind, usual = resource.RLIMIT_DATA, resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(kind, (_held() + MEMORY, usual[1]))
    try:
        return read(path)
    except MemoryError:
        raise TimeoutError("the library takes too long, and too much memory") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(kind, usual)


def _held() -> int:
    """Bytes of private memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()


def _stop(_: int, frame: FrameType | None) -> None:
    """Raise, but not while pytest notes an exception that nobody catches: the timer comes again."""
    while frame is not None:
        if frame.f_code.co_name == "unraisable_hook":
            return
        frame = frame.f_back
    raise TimeoutError("the library takes too long")


def _theirs(read: Read, path: Path) -> tuple[Any, str | None]:
    """What the library makes of a file, or why it refuses it."""
    try:
        return _in_time(read, path), None
    except Exception as error:  # its own kinds, and what it lets through
        return None, f"{type(error).__name__}: {error}".replace("\n", " ")


def _listed(patterns: tuple[str, ...], reason: str, what: str) -> str:
    for pattern in patterns:
        if re.search(pattern, reason):
            return pattern
    raise AssertionError(f"{what}: {reason}")


def pairs() -> dict[str, Callable[[], Pair]]:
    """The formats, each with what makes its pair: a library is imported only where it is asked
    for.
    """

    def safetensors() -> Pair:
        from drawn_safetensors import PAIR

        return PAIR

    def gguf() -> Pair:
        from drawn_gguf import PAIR

        return PAIR

    def torch() -> Pair:
        from drawn_torch import PAIR

        return PAIR

    def pickles() -> Pair:
        from drawn_torch import MUTATED

        return MUTATED

    return {"safetensors": safetensors, "gguf": gguf, "torch": torch, "pickles": pickles}


def main() -> None:
    """Compare one format's readers on as many files as are asked for."""
    if len(sys.argv) < 3 or sys.argv[1] not in pairs():
        raise SystemExit(f"say which of {', '.join(pairs())}, and how many files")
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    print(f"{int(sys.argv[2]):,} files of {sys.argv[1]}, seed {seed}")  # noqa: T201
    print(compared(pairs()[sys.argv[1]](), int(sys.argv[2]), seed, Path(mkdtemp())))  # noqa: T201


if __name__ == "__main__":
    main()
