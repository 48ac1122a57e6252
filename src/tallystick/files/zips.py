"""Locate and read members of untrusted zip archives, without unpacking to disk.

The archive's directory is checked against the file. Members may not overlap, or have names that
lead out of a folder. Inflating stops at a limit, whatever the directory claims.
"""

from __future__ import annotations

import struct
import zlib
from io import BufferedReader
from operator import attrgetter
from typing import NamedTuple

from tallystick.core.budget import current
from tallystick.errors import BadInput, quoted
from tallystick.files.local import read_all_of

MAGIC = b"PK\x03\x04"
STORED, DEFLATED = 0, 8  # compression methods

_LOCAL = struct.Struct("<4s5H3I2H")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_LONGEST_COMMENT = 0xFFFF
_IN_64 = 0xFFFFFFFF  # marks a size or offset that is in the 64-bit extra field
_BLOCK = 1 << 16
_MEMBER = 500  # bytes that Python takes for a member, without its name


class Member(NamedTuple):
    """One file of an archive, as the archive's directory states it."""

    name: str
    method: int
    checksum: int
    packed: int  # in bytes in the archive
    size: int  # in bytes of the file itself
    header: int  # offset of its local header in the archive


def members(file: BufferedReader, size: int) -> dict[str, Member]:
    """Return the members of an archive by name, in the order of their offsets.

    Args:
        file: the archive, opened.
        size: its bytes.

    Raises:
        BadInput: if the directory is cut off, contradicts the file, or lists an unsafe member.
    """
    start, length, count = _directory(file, size)
    budget = current()
    budget.step(10 * count)
    budget.keep(2 * length + _MEMBER * count, f"its directory of {count:,} members")
    budget.read(length)
    file.seek(start)
    content = read_all_of(file, length)
    found: list[Member] = []
    position = 0
    for _ in range(count):
        if position + _ENTRY.size > length:
            raise BadInput(f"its directory claims {count:,} members and ends after {len(found):,}", code="malformed")
        member, position = _entry(content, position)
        found.append(member)
    found.sort(key=attrgetter("header"))
    end = 0
    for member in found:
        if member.header < end:
            raise BadInput(f"its member {quoted(member.name)} overlaps the one before it", code="overlap")
        end = member.header + _LOCAL.size + member.packed
        if end > start:
            raise BadInput(f"its member {quoted(member.name)} extends past the end of the archive", code="malformed")
    by_name = {member.name: member for member in found}
    if len(by_name) < len(found):
        raise BadInput("two members have the same name", code="overlap")
    return by_name


def place_of(file: BufferedReader, member: Member) -> int:
    """Return the offset of a member's data in the archive.

    Raises:
        BadInput: if its local header is missing.
    """
    file.seek(member.header)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(MAGIC):
        raise BadInput(f"its member {quoted(member.name)} is not at the offset in the directory", code="malformed")
    *_, name, extra = _LOCAL.unpack(header)
    return int(member.header + _LOCAL.size + name + extra)


def content_of(file: BufferedReader, member: Member, most: int) -> bytes:
    """Return all bytes of a small member.

    Args:
        file: the archive, opened.
        member: the member.
        most: most bytes that it may have.

    Raises:
        BadInput: if it claims or has more than `most` bytes, or its checksum is wrong.
    """
    if member.size > most:
        raise BadInput(
            f"its member {quoted(member.name)} has {member.size:,} bytes, more than the {most:,} that are read",
            code="too-large",
        )
    content = start_of(file, member, member.size + 1)
    if len(content) != member.size or zlib.crc32(content) != member.checksum:
        raise BadInput(
            f"its member {quoted(member.name)} is damaged: wrong size or checksum",
            code="malformed",
        )
    return content


def start_of(file: BufferedReader, member: Member, most: int) -> bytes:
    """Return the first bytes of a member.

    Args:
        file: the archive, opened.
        member: the member.
        most: most bytes to return, whatever size the member claims.

    Raises:
        BadInput: if it is compressed by an unknown method, or damaged.
    """
    file.seek(place_of(file, member))
    if member.method == STORED:
        return file.read(min(most, member.packed))
    if member.method != DEFLATED:
        raise BadInput(
            f"its member {quoted(member.name)} uses compression method {member.method}, expected none or deflate",
            code="unsupported",
        )
    unpack, left, content = zlib.decompressobj(-zlib.MAX_WBITS), member.packed, b""
    try:
        while len(content) < most and left > 0 and not unpack.eof:
            block = file.read(min(_BLOCK, left))
            if not block:
                break
            left -= len(block)
            content += unpack.decompress(block, most - len(content))
    except zlib.error as error:
        raise BadInput(f"its member {quoted(member.name)} cannot be inflated: {error}", code="malformed") from None
    return content


def _directory(file: BufferedReader, size: int) -> tuple[int, int, int]:
    """Return the offset of the directory, its bytes, and its number of members."""
    tail = min(size, _LONGEST_COMMENT + _END.size + _LOCATOR.size)
    file.seek(size - tail)
    content = file.read(tail)
    at = content.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(content):
        raise BadInput("the zip archive is truncated: its end is missing", code="truncated")
    _, disk, _, _, count, length, start, _ = _END.unpack_from(content, at)
    end = size - tail + at
    if content[max(at - _LOCATOR.size, 0) : at].startswith(b"PK\x06\x07"):
        _, _, place, _ = _LOCATOR.unpack_from(content, at - _LOCATOR.size)
        if place + _END_64.size > end:
            raise BadInput("the zip archive's end record has a wrong offset", code="malformed")
        file.seek(place)
        magic, _, _, _, disk, _, _, count, length, start = _END_64.unpack(read_all_of(file, _END_64.size))
        if magic != b"PK\x06\x06":
            raise BadInput("the zip archive's end record has a wrong offset", code="malformed")
        end = place
    if disk:
        raise BadInput("it is one part of a multi-part zip archive", code="unsupported")
    if start + length > end:
        raise BadInput("the zip archive's directory extends past its end", code="malformed")
    return start, length, count


def _entry(content: bytes, position: int) -> tuple[Member, int]:
    """Return one entry of the directory, and the position of the next."""
    fields = _ENTRY.unpack_from(content, position)
    magic, _, _, flags, method, _, _, checksum, packed, size, name_length, extra_length, comment, *_, header = fields
    name_end = position + _ENTRY.size + name_length
    extra_end = name_end + extra_length
    if magic != b"PK\x01\x02" or extra_end + comment > len(content):
        raise BadInput("the zip archive's directory is broken", code="malformed")
    name = content[position + _ENTRY.size : name_end].decode("utf-8" if flags & 0x800 else "cp437", "replace")
    if flags & 1:
        raise BadInput(f"its member {quoted(name)} is encrypted", code="unsupported")
    if name.startswith("/") or "\\" in name or ":" in name or "\0" in name or ".." in name.split("/"):
        raise BadInput(f"its member {quoted(name)} has a name that leads out of the archive", code="unsafe")
    size, packed, header = _in_64(content[name_end:extra_end], [size, packed, header])
    if method == STORED and size != packed:
        raise BadInput(
            f"its member {quoted(name)} is not compressed, but claims {size:,} bytes of {packed:,}", code="malformed"
        )
    return Member(name, method, checksum, packed, size, header), extra_end + comment


def _in_64(extra: bytes, values: list[int]) -> list[int]:
    """Return sizes and offset; values over 32 bits are from the 64-bit extra field."""
    if _IN_64 not in values:
        return values
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        field, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == 1:
            wide = iter([int.from_bytes(field[at : at + 8], "little") for at in range(0, len(field) - 7, 8)])
            return [next(wide, value) if value == _IN_64 else value for value in values]
    return values
