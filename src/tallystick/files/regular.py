"""List and open the regular files of a folder, without reading anything outside it.

A link to a regular file in the folder counts as that file. Links that lead outside are followed in
one case, the Hugging Face cache:
``models--ORG--NAME/snapshots/REVISION/FILE -> ../../blobs/HASH``. Any other link is refused by its
name, as are devices, pipes and sockets.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tallystick.errors import BadInput, code_of, quoted

BLOCK = 1 << 20  # bytes copied at a time

_CACHED = re.compile(r"(models|datasets|spaces)--.+")
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
_KINDS = {
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "another link",
}  # fmt: skip


class Stamp(NamedTuple):
    """Facts that change if a file is replaced or written to."""

    device: int
    inode: int
    size: int  # in bytes
    modified: int  # in nanoseconds


class RegularFile(NamedTuple):
    """Path of a file below a folder, without links, and the file's state."""

    root: Path
    parts: tuple[str, ...]
    stamp: Stamp
    mode: int


@dataclass(frozen=True)
class Listing:
    """Regular files and subfolders of a folder, by relative path."""

    folder: Path  # as named by the user
    files: dict[str, RegularFile]
    folders: dict[str, int]  # folder -> permissions

    def open(self, name: str) -> BufferedReader:
        """Open a listed file for reading.

        Raises:
            BadInput: if it cannot be read, or has changed since it was listed.
        """
        listed = self.files[name]
        try:
            file = os.fdopen(_opened(listed), "rb")
        except OSError as error:
            raise BadInput(
                f"{self.folder}: {quoted(name)} cannot be read: {error.strerror or error}", code=code_of(error)
            ) from None
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or _stamp(status) != listed.stamp:
            file.close()
            raise self._changed()
        return file

    def copy(self, out: Path, *, leave: Container[str] = ()) -> None:
        """Copy all files and subfolders into an existing folder.

        Args:
            out: the target folder.
            leave: names of files to leave out.
        """
        for name in sorted(self.folders):  # parents before children
            (out / name).mkdir(exist_ok=True)
        for name, listed in self.files.items():
            if name not in leave:
                with self.open(name) as source, (out / name).open("xb") as target:
                    copy_bytes(source, target, listed.stamp.size, what=self.folder)
                os.utime(out / name, ns=(listed.stamp.modified, listed.stamp.modified))

    def copy_permissions(self, out: Path) -> None:
        """Give the files written into `out` the permissions of the originals.

        Call this last: the permissions may forbid writing.
        """
        for name, listed in self.files.items():
            if (out / name).exists():
                (out / name).chmod(listed.mode & 0o777)  # without set-user-ID and similar bits
        for name in sorted(self.folders, reverse=True):
            (out / name).chmod(self.folders[name] & 0o777)

    def refuse_change(self) -> None:
        """Raise `BadInput` if the folder no longer matches the listing."""
        if list_regular(self.folder) != self:
            raise self._changed()

    def _changed(self) -> BadInput:
        return BadInput(
            f"{self.folder} changed while it was copied: try again when nothing writes to it", code="changed"
        )


def list_regular(folder: Path) -> Listing:
    """List the regular files of a folder and its subfolders.

    Raises:
        BadInput: if it holds anything but files, folders and allowed links, or cannot be read.
    """
    root = Path(os.path.realpath(folder))
    files: dict[str, RegularFile] = {}
    try:
        folders = {"": os.stat(root).st_mode}
        waiting = [""]
        while waiting:
            inside = waiting.pop()
            for name in sorted(os.path.join(inside, one) for one in os.listdir(root / inside)):
                status = os.lstat(root / name)
                if stat.S_ISDIR(status.st_mode):
                    folders[name] = status.st_mode
                    waiting.append(name)
                elif stat.S_ISLNK(status.st_mode):
                    files[name] = _linked(folder, root, name)
                else:
                    what = f"{folder} holds {quoted(name)}"
                    files[name] = _regular(root, tuple(Path(name).parts), status, what)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror or error}", code=code_of(error)) from None
    return Listing(folder, files, folders)


def copy_bytes(source: BinaryIO, target: BinaryIO, length: int, *, what: Path) -> None:
    """Copy bytes between the current positions of two files.

    Args:
        source: file to read.
        target: file to write.
        length: number of bytes.
        what: name of the source in messages.

    Raises:
        BadInput: if `source` has fewer bytes.
    """
    while length:
        block = source.read(min(BLOCK, length))
        if not block:
            raise BadInput(f"{what} shrank while it was copied", code="changed")
        length -= len(block)
        target.write(block)


def _linked(folder: Path, root: Path, name: str) -> RegularFile:
    """Return the regular file that a link in a folder points to."""
    target = os.readlink(root / name)
    above, last = os.path.split(os.path.join(root, os.path.dirname(name), target))
    place = Path(os.path.realpath(above), last)  # the last part is not resolved
    what = f"{folder} holds {quoted(name)}, a link to {quoted(target)}"
    cache = _cache_around(root)
    if cache is not None and place.parent == cache / "blobs":
        root = cache
    elif not place.is_relative_to(root) or last == "..":
        raise BadInput(
            f"{what} outside the folder, which is not followed: replace the link by the file, or remove it",
            code="unsafe",
        )
    if not os.path.lexists(place):
        raise BadInput(f"{what}, which does not exist: add the file, or remove the link", code="incomplete")
    return _regular(root, place.relative_to(root).parts, os.lstat(place), what)


def _cache_around(root: Path) -> Path | None:
    """Return the repository in the Hugging Face cache whose snapshot holds a folder."""
    for folder in root.parents:
        if folder.name == "snapshots" and _CACHED.fullmatch(folder.parent.name):
            return folder.parent
    return None


def _regular(root: Path, parts: tuple[str, ...], status: os.stat_result, what: str) -> RegularFile:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        raise BadInput(
            f"{what}, which is {kind}: remove it from the folder (only regular files are copied)", code="unsafe"
        )
    return RegularFile(root, parts, _stamp(status), status.st_mode)


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _opened(listed: RegularFile) -> int:
    """Open a file without following any link below its root; return the descriptor."""
    if os.open not in os.supports_dir_fd:
        return os.open(listed.root.joinpath(*listed.parts), _FILE)
    *folders, last = listed.parts
    at = os.open(listed.root, _FOLDER)
    try:
        for folder in folders:
            outer, at = at, os.open(folder, _FOLDER, dir_fd=at)
            os.close(outer)
        return os.open(last, _FILE, dir_fd=at)
    finally:
        os.close(at)
