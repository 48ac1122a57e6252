"""A file that is elsewhere, read where it is: pieces are fetched as the readers ask for them, and counted.

`Remote` has the part of a `Path` that the readers use, and opens as a file that seeks. So each format has one reader,
wherever its files are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from tallystick.core.evidence import Fetched
from tallystick.errors import BadInput
from tallystick.files.allowance import MOST_REQUESTS, Allowance

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FIRST_PIECE = 1 << 16  # bytes: the headers of most shards are shorter
LARGEST_PIECE = 1 << 23  # of files that are read on and on, each piece is twice the one before
MOST_FETCHED = 160_000_000  # bytes of one file: the longest header that a format allows, and room for steps
AT_ONCE = 8  # shards whose headers are fetched beside one another


class NotThere(BadInput):
    """There is no such file."""

    code = "not-found"


class Piece(NamedTuple):
    """Some bytes of a file, and what is learnt of it with them."""

    content: bytes
    size: int  # of the whole file
    version: str | None = None  # a word that changes when the file does

    @property
    def state(self) -> tuple[int, str | None]:
        """What all pieces of one file have in common."""
        return self.size, self.version


class Tally:
    """Counts what is fetched, by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._bytes = 0
        self.allowance = Allowance()
        self._files: dict[str, tuple[int, str | None]] = {}  # each that was asked for, and its state

    def receive(self, key: str, piece: Piece) -> bool:
        """Count a piece of a file; False where the file is not as its pieces before said."""
        with self._lock:
            self._bytes += len(piece.content)
            return self._files.setdefault(key, piece.state) == piece.state

    @property
    def fetched(self) -> Fetched:
        """All so far."""
        return Fetched(self._bytes, sum(size for size, _ in self._files.values()), self.allowance.requests)


class Store(Protocol):
    """Where files are, by keys with slashes between their parts."""

    tally: Tally

    def names(self, folder: str) -> Sequence[str] | None:
        """The files in a folder; None where they cannot be listed."""

    def read(self, key: str, start: int, length: int) -> Piece:
        """A piece of a file, shorter only where the file ends; `NotThere` where there is none."""

    def shown(self, key: str) -> str:
        """A file or folder as the user would name it."""


class Remote:
    """A file or folder elsewhere, with the part of a `Path` that the readers use."""

    def __init__(self, store: Store, key: str) -> None:
        self.store, self._key = store, key

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(self._key).name

    @property
    def suffix(self) -> str:
        """What its name ends with, from the last dot on."""
        return PurePosixPath(self._key).suffix

    @property
    def parent(self) -> Remote:
        """The folder that it is in."""
        return Remote(self.store, self._key.rpartition("/")[0])

    def __truediv__(self, name: str) -> Remote:
        return Remote(self.store, f"{self._key}/{name}" if self._key else name)

    def with_name(self, name: str) -> Remote:
        """A file beside it."""
        return self.parent / name

    def __str__(self) -> str:
        return self.store.shown(self._key)

    def iterdir(self) -> Iterator[Remote]:
        """The files of a folder."""
        names = self.store.names(self._key)
        if names is None:
            raise BadInput(f"{self} cannot be listed: name a file", code="unsupported")
        return (self / name for name in names)

    def exists(self) -> bool | None:
        """Whether there is such a file; None where only opening it can tell, as its folder cannot be listed."""
        names = self.store.names(self._key.rpartition("/")[0])
        return None if names is None else self.name in names

    def open(self) -> tuple[BufferedReader, int]:
        """The file opened for reading, and its size in bytes; `NotThere` where there is none."""
        first = self.fetch(0, FIRST_PIECE)
        if not first.size:
            raise BadInput(f"{self} is empty", code="truncated")
        return BufferedReader(_Pieces(self, first), FIRST_PIECE), first.size

    def fetch(self, start: int, length: int) -> Piece:
        """A piece, of the same file as those before it."""
        piece = self.store.read(self._key, start, length)
        if not self.store.tally.receive(self._key, piece):
            raise BadInput(f"{self} was changed while it was read: read it again", code="changed")
        if len(piece.content) < min(length, piece.size - start):
            raise BadInput(
                f"{self}: of the {length:,} bytes from {start:,} on only {len(piece.content):,} came",
                code="unreachable",
            )
        return piece


Location: TypeAlias = Path | Remote
AnyLocation = TypeVar("AnyLocation", Path, Remote, Location)
_Result = TypeVar("_Result")


def at_once(work: Callable[[AnyLocation], _Result], paths: Sequence[AnyLocation]) -> list[_Result]:
    """What `work` makes of each path: of several at once where it must wait for them."""
    if not any(isinstance(path, Remote) for path in paths):
        return [work(path) for path in paths]
    if len(paths) > MOST_REQUESTS:
        raise BadInput(
            f"{len(paths):,} files would have to be asked for, more than {MOST_REQUESTS:,}: download them",
            code="too-large",
        )
    from concurrent.futures import ThreadPoolExecutor

    contexts = [copy_context() for _ in paths]  # the budget of the source is that of its threads too
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(lambda context, path: context.run(work, path), contexts, paths))


class _Pieces(RawIOBase):
    """A file of which one piece at a time is here."""

    def __init__(self, file: Remote, first: Piece) -> None:
        self._file, self._size = file, first.size
        self._content, self._start = first.content, 0
        self._position, self._step = 0, FIRST_PIECE
        self._left = MOST_FETCHED - len(first.content)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = (0, self._position, self._size)[whence] + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        wanted = memoryview(buffer).cast("B")
        if self._position >= self._size or not wanted:
            return 0
        if not self._start <= self._position < self._start + len(self._content):
            self._fetch(len(wanted))
        begin = self._position - self._start
        found = self._content[begin : begin + len(wanted)]
        wanted[: len(found)] = found
        self._position += len(found)
        return len(found)

    def _fetch(self, wanted: int) -> None:
        if not 0 <= self._position - self._start - len(self._content) < FIRST_PIECE:
            self._step = FIRST_PIECE
        elif wanted <= FIRST_PIECE:  # read on in small steps: who asks for much at once knows how much
            self._step *= 2
        length = min(max(wanted, self._step), LARGEST_PIECE, self._size - self._position)
        self._left -= length
        if self._left < 0:
            raise BadInput(
                f"{self._file}: more than {MOST_FETCHED:,} bytes of it would have to be fetched", code="too-large"
            )
        self._content, self._start = self._file.fetch(self._position, length).content, self._position
