"""The regular files of a folder, listed first and then opened as they were listed: nothing outside it is read.

A link to a regular file in the folder counts as that file. One layout of links that lead outside is known, that of
Hugging Face's cache: ``models--ORG--NAME/snapshots/REVISION/FILE -> ../../blobs/HASH``. Any other link is refused by its
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

BLOCK = 1 << 20  # bytes copied at once

_CACHED = re.compile(r"(models|datasets|spaces)--.+")
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
_KINDS = {
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "another link",
}  # fmt: skip


class Stamp(NamedTuple):
    """What changes when another file has taken a name, or the file was written to."""

    device: int
    inode: int
    size: int  # in bytes
    modified: int  # in nanoseconds


class RegularFile(NamedTuple):
    """Where a file lies below a folder without links in its path."""

    root: Path
    parts: tuple[str, ...]
    stamp: Stamp
    mode: int


@dataclass(frozen=True)
class Listing:
    """The regular files of a folder, and the folders in it, by their paths from there."""

    folder: Path  # as the user named it
    files: dict[str, RegularFile]
    folders: dict[str, int]  # with their permissions

    def open(self, name: str) -> BufferedReader:
        """A file, opened for reading.

        Raises:
            BadInput: where it is not the file that was listed.
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
        """Copy all files and folders into a folder that is there, except the files named in `leave`."""
        for name in sorted(self.folders):  # each after the one that holds it
            (out / name).mkdir(exist_ok=True)
        for name, listed in self.files.items():
            if name not in leave:
                with self.open(name) as source, (out / name).open("xb") as target:
                    copy_bytes(source, target, listed.stamp.size, what=self.folder)
                os.utime(out / name, ns=(listed.stamp.modified, listed.stamp.modified))

    def copy_permissions(self, out: Path) -> None:
        """Give what was written into `out` the permissions of the originals. Do this last: they may forbid writing."""
        for name, listed in self.files.items():
            if (out / name).exists():
                (out / name).chmod(listed.mode & 0o777)  # without set-user-ID and its kin
        for name in sorted(self.folders, reverse=True):
            (out / name).chmod(self.folders[name] & 0o777)

    def refuse_change(self) -> None:
        """Raise `BadInput` where the folder does not hold now what was listed."""
        if list_regular(self.folder) != self:
            raise self._changed()

    def _changed(self) -> BadInput:
        return BadInput(
            f"{self.folder} was changed while it was copied: try again when nothing writes to it", code="changed"
        )


def list_regular(folder: Path) -> Listing:
    """List a folder and all folders in it.

    Raises:
        BadInput: for what is no regular file, by its name, and for a folder that cannot be read.
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
    """Copy so many bytes from where two files stand; `BadInput` where `source` has fewer."""
    while length:
        block = source.read(min(BLOCK, length))
        if not block:
            raise BadInput(f"{what} became shorter while it was copied", code="changed")
        length -= len(block)
        target.write(block)


def _linked(folder: Path, root: Path, name: str) -> RegularFile:
    """The regular file that a link in a folder leads to."""
    target = os.readlink(root / name)
    above, last = os.path.split(os.path.join(root, os.path.dirname(name), target))
    place = Path(os.path.realpath(above), last)  # the last step is not followed
    what = f"{folder} holds {quoted(name)}, a link to {quoted(target)}"
    cache = _cache_around(root)
    if cache is not None and place.parent == cache / "blobs":
        root = cache
    elif not place.is_relative_to(root) or last == "..":
        raise BadInput(
            f"{what} outside of it, which is not followed: put the file there, or remove the link", code="unsafe"
        )
    if not os.path.lexists(place):
        raise BadInput(f"{what}, which is not there: put the file there, or remove the link", code="incomplete")
    return _regular(root, place.relative_to(root).parts, os.lstat(place), what)


def _cache_around(root: Path) -> Path | None:
    """The repository in Hugging Face's cache of which a folder is a snapshot, or a folder in one."""
    for folder in root.parents:
        if folder.name == "snapshots" and _CACHED.fullmatch(folder.parent.name):
            return folder.parent
    return None


def _regular(root: Path, parts: tuple[str, ...], status: os.stat_result, what: str) -> RegularFile:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise BadInput(
            f"{what}, which is {kind}: only regular files are copied, remove it from the folder", code="unsafe"
        )
    return RegularFile(root, parts, _stamp(status), status.st_mode)


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _opened(listed: RegularFile) -> int:
    """The descriptor of a file, with no link followed on the way from its root."""
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
