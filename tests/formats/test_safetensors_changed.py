"""Drawn and changed safetensors files: refused in one line, or read as their library reads them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from checkpoints import data_bytes, header_of, write_raw
from hostile import mutations, rewritten, survives
from read_safetensors import by_library, by_us
from rotating import drawn_by_commit
from tallystick.errors import BadInput


@st.composite
def headers(draw: DrawFn) -> tuple[bytes, int]:
    """A sound header and the bytes of data that it asks for."""
    names = draw(st.lists(st.sampled_from(["a", "b.0.w", "b.1.w", "é", "wte.weight", 'q"\\']), unique=True, max_size=4))
    shapes = {name: draw(st.lists(st.integers(0, 5), max_size=3)) for name in names}
    words = {name: draw(st.sampled_from(["F32", "BF16", "U8", "I64", "BOOL", "F8_E4M3"])) for name in names}
    header = header_of(shapes, dtypes=words)
    data = max((one["data_offsets"][1] for one in header.values()), default=0)
    if draw(st.booleans()):
        header["__metadata__"] = draw(
            st.dictionaries(st.sampled_from(["format", "a"]), st.sampled_from(["pt", "b.0.w"]))
        )
    order = draw(st.permutations(list(header)))
    spaced = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r")]))
    text = json.dumps({name: header[name] for name in order}, separators=spaced, ensure_ascii=draw(st.booleans()))
    return (text + " " * draw(st.integers(0, 8))).encode(), data


PIECES = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b" ", b"\\", b"0", b"9", b"-", b".", b"e", b"\n", b"\0", b"\xff", b"\xc3",
    b"\\u0000", b"\\ud800", b"null", b"true", b"4294967296", b"9223372036854775808", b"18446744073709551615", b"F32",
    b"F64", b"U8", b"F4", b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},', b'"__metadata__":{},', b"dtype",
    b'"extra":1,', "٢".encode(),
]  # fmt: skip


@st.composite
def files(draw: DrawFn) -> bytes:
    """A sound file with a few things done to it."""
    header, data = draw(headers())
    edited = bytearray(header)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(edited)))
        match draw(st.sampled_from(["flip", "insert", "delete", "number", "word", "repeat"])):
            case "flip" if at < len(edited):
                edited[at] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                edited[at:at] = draw(st.sampled_from(PIECES))
            case "delete":
                del edited[at : at + draw(st.integers(1, 12))]
            case "number":
                digits = [place for place, byte in enumerate(edited) if chr(byte).isdigit()]
                if digits:
                    place = draw(st.sampled_from(digits))
                    edited[place : place + 1] = draw(st.sampled_from([b"0", b"1", b"8", b"00", b"16", b"-1", b"1.0"]))
            case "word":
                words = [b"F32", b"BF16", b"U8", b"I64", b"shape", b"dtype", b"data_offsets", b"__metadata__"]
                old, new = draw(st.sampled_from(words)), draw(st.sampled_from(words))
                edited = edited.replace(old, new, draw(st.integers(1, 2)))
            case "repeat":
                part = bytes(edited[at : at + draw(st.integers(1, 60))])
                edited[at:at] = part
    length = max(0, len(edited) + draw(st.sampled_from([0] * 8 + [1, -1, 8, 2**40])))
    content = length.to_bytes(8, "little") + bytes(edited) + bytes(data)
    end = draw(st.sampled_from([0] * 8 + [1, 7]))
    return content[: len(content) - end] + bytes(draw(st.sampled_from([0] * 8 + [1])))


@drawn_by_commit(500)
@given(content=files())
@example(content=b"")
@example(content=b"version https://git-lfs.github.com/spec/v1\n")
def test_no_file_is_read_otherwise_than_by_the_library(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    """Refused in one line, or read as the library reads it: nothing else, whatever the bytes
    are.
    """
    path = tmp_path_factory.getbasetemp() / "mutated.safetensors"
    path.write_bytes(content)
    try:
        ours = by_us(path)
    except BadInput as error:
        refusal = str(error)
    else:
        assert ours == by_library(path)
        return
    assert refusal.isprintable()
    assert len(refusal) < 400 + len(str(path))


@drawn_by_commit(150)
@given(header=headers())
def test_sound_files_are_read(tmp_path_factory: pytest.TempPathFactory, header: tuple[bytes, int]):
    """The drawn headers are sound before anything is done to them: the test above has something to
    break.
    """
    path = write_raw(tmp_path_factory.getbasetemp() / "sound.safetensors", *header)
    assert by_us(path) == by_library(path)


SOUND = {
    "__metadata__": {"format": "pt", "é": ""},
    **header_of({"h.0.w": (2, 3), "h.1.w": (2, 3), 'q"\\': (), "none": (0, 4)}),
}


def as_the_library_reads_it(path: Path) -> None:
    assert by_us(path) == by_library(path)


@pytest.mark.parametrize("spaced", [(",", ":"), (" ,\n", "\t:\r")], ids=["close", "spaced"])
def test_a_changed_file_is_counted_or_refused(tmp_path: Path, spaced: tuple[str, str]):
    path = write_raw(tmp_path / "a.safetensors", json.dumps(SOUND, separators=spaced), data_bytes(SOUND))
    assert survives(path, mutations(path.read_bytes(), most=200), read=as_the_library_reads_it)


def test_a_header_with_other_values_is_counted_or_refused(tmp_path: Path):
    path, data = tmp_path / "a.safetensors", data_bytes(SOUND)
    put = partial(write_raw, path, data=data)
    assert survives(path, rewritten(SOUND, most=200), put=put, read=as_the_library_reads_it)
