"""Read remote files in place: pieces are fetched on demand, and counted.

`Remote` has the methods of `Path` that the readers use, and opens as a seekable file. So each
format has one reader, for local and remote files.
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

FIRST_PIECE = 1 << 16  # bytes: most shards have a shorter header
LARGEST_PIECE = 1 << 23  # bytes; in sequential reading, each piece is twice the one before
MOST_FETCHED = 160_000_000  # bytes of one file: the longest header of any format, and room for growing pieces
AT_ONCE = 8  # shards whose headers are fetched in parallel


class NotThere(BadInput):
    """The file does not exist."""

    code = "not-found"


class Missing(BaseException):
    """Pieces of files that were not handed in yet; no reader takes it for an error of the file."""

    def __init__(self, pieces: Sequence[tuple[str, int, int]]) -> None:
        super().__init__(f"{len(pieces)} pieces are missing")
        self.pieces = tuple(pieces)  # file, first byte and number of bytes of each


class Piece(NamedTuple):
    """Bytes of a file, with the size and version of the whole file."""

    content: bytes
    size: int  # of the whole file, in bytes
    version: str | None = None  # changes if the file does, such as an ETag

    @property
    def state(self) -> tuple[int, str | None]:
        """Size and version, which all pieces of one file share."""
        return self.size, self.version


class Tally:
    """Thread-safe count of fetched bytes and requests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._bytes = 0
        self.allowance = Allowance()
        self._files: dict[str, tuple[int, str | None]] = {}  # requested files -> size and version

    def receive(self, key: str, piece: Piece) -> bool:
        """Count a piece of a file.

        Returns:
            False if the file changed since earlier pieces.
        """
        with self._lock:
            self._bytes += len(piece.content)
            return self._files.setdefault(key, piece.state) == piece.state

    @property
    def fetched(self) -> Fetched:
        """Total so far."""
        return Fetched(self._bytes, sum(size for size, _ in self._files.values()), self.allowance.requests)


class Store(Protocol):
    """A place with files, by keys with slashes between their parts."""

    tally: Tally

    def names(self, folder: str) -> Sequence[str] | None:
        """Return the files in a folder; None if they cannot be listed."""

    def read(self, key: str, start: int, length: int) -> Piece:
        """Return a piece of a file, shorter only at the end of the file.

        Args:
            key: the file.
            start: first byte.
            length: number of bytes.

        Raises:
            NotThere: if there is no such file.
        """

    def shown(self, key: str) -> str:
        """Return the address of a file or folder as the user would write it."""


class Remote:
    """A remote file or folder, with the methods of `Path` that the readers use."""

    def __init__(self, store: Store, key: str) -> None:
        self.store, self._key = store, key

    @property
    def name(self) -> str:
        """Last part of the path."""
        return PurePosixPath(self._key).name

    @property
    def suffix(self) -> str:
        """File name extension, with its dot."""
        return PurePosixPath(self._key).suffix

    @property
    def parent(self) -> Remote:
        """Folder that holds it."""
        return Remote(self.store, self._key.rpartition("/")[0])

    def __truediv__(self, name: str) -> Remote:
        return Remote(self.store, f"{self._key}/{name}" if self._key else name)

    def with_name(self, name: str) -> Remote:
        """Return a file in the same folder."""
        return self.parent / name

    def __str__(self) -> str:
        return self.store.shown(self._key)

    def iterdir(self) -> Iterator[Remote]:
        """Yield the files of a folder.

        Raises:
            BadInput: if the folder cannot be listed.
        """
        names = self.store.names(self._key)
        if names is None:
            raise BadInput(f"{self} cannot be listed: name a file", code="unsupported")
        return (self / name for name in names)

    def exists(self) -> bool | None:
        """Return whether the file exists; None if its folder cannot be listed."""
        names = self.store.names(self._key.rpartition("/")[0])
        return None if names is None else self.name in names

    def open(self) -> tuple[BufferedReader, int]:
        """Open the file for reading; return it and its size in bytes.

        Raises:
            NotThere: if there is no such file.
            BadInput: if it is empty or cannot be read.
        """
        first = self.fetch(0, FIRST_PIECE)
        if not first.size:
            raise BadInput(f"{self} is empty", code="truncated")
        return BufferedReader(_Pieces(self, first), FIRST_PIECE), first.size

    def fetch(self, start: int, length: int) -> Piece:
        """Fetch a piece of the file.

        Args:
            start: first byte.
            length: number of bytes.

        Raises:
            BadInput: if the file has changed since earlier pieces, or fewer bytes came.
        """
        piece = self.store.read(self._key, start, length)
        if not self.store.tally.receive(self._key, piece):
            raise BadInput(f"{self} changed while it was read: try again", code="changed")
        if len(piece.content) < min(length, piece.size - start):
            raise BadInput(
                f"{self}: only {len(piece.content):,} of the {length:,} bytes from byte {start:,} arrived",
                code="unreachable",
            )
        return piece


Location: TypeAlias = Path | Remote
AnyLocation = TypeVar("AnyLocation", Path, Remote, Location)
_Result = TypeVar("_Result")


def at_once(work: Callable[[AnyLocation], _Result], paths: Sequence[AnyLocation]) -> list[_Result]:
    """Return `work(path)` for each path; remote paths are processed in parallel threads.

    Args:
        work: the function to call.
        paths: local or remote files.

    Raises:
        BadInput: if there are more remote paths than requests allowed.
    """
    if not any(isinstance(path, Remote) for path in paths):
        return [work(path) for path in paths]
    if any(isinstance(path, Remote) and getattr(path.store, "handed_in", False) for path in paths):
        return _each(work, paths)
    if len(paths) > MOST_REQUESTS:
        raise BadInput(
            f"needs {len(paths):,} files, more than the {MOST_REQUESTS:,} allowed: download them",
            code="too-large",
        )
    from concurrent.futures import ThreadPoolExecutor

    contexts = [copy_context() for _ in paths]  # the threads share the budget of the source
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(lambda context, path: context.run(work, path), contexts, paths))


def _each(work: Callable[[AnyLocation], _Result], paths: Sequence[AnyLocation]) -> list[_Result]:
    """Return `work(path)` for each path; collect what is missing of all of them."""
    found: list[_Result] = []
    missing: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            found.append(work(path))
        except Missing as error:
            missing += error.pieces
    if missing:
        raise Missing(missing)
    return found


class _Pieces(RawIOBase):
    """Seekable stream of a remote file; one piece at a time is in memory."""

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
        elif wanted <= FIRST_PIECE:  # sequential small reads; a large read knows its size
            self._step *= 2
        length = min(max(wanted, self._step), LARGEST_PIECE, self._size - self._position)
        self._left -= length
        if self._left < 0:
            raise BadInput(f"{self._file}: needs more than {MOST_FETCHED:,} bytes of it", code="too-large")
        self._content, self._start = self._file.fetch(self._position, length).content, self._position
