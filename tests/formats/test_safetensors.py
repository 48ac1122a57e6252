"""The header reader against the format's own library: what that writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from checkpoints import header_of, write_raw
from read_safetensors import by_library, by_us
from tallystick.core import budget
from tallystick.core.budget import one_source
from tallystick.core.dtypes import BITS
from tallystick.errors import BadInput
from tallystick.formats.safetensors import LARGEST_HEADER, read_header
from tallystick.formats.safetensors_json import DTYPES
from tallystick.formats.weights_file import StoredTensor

TORCH_DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint64, torch.uint32, torch.uint16, torch.uint8, torch.bool, torch.complex64,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu,
]  # fmt: skip


# -- what the library writes ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_every_dtype_that_torch_can_save(tmp_path: Path, dtype: torch.dtype):
    tensors = {"scalar": torch.zeros((), dtype=dtype), "matrix": torch.zeros(2, 3, dtype=dtype)}
    try:
        save_file(tensors, tmp_path / "a.safetensors")
    except KeyError:
        pytest.skip("this version of safetensors cannot save it")
    name = str(dtype).removeprefix("torch.")
    assert by_us(tmp_path / "a.safetensors") == {"scalar": ((), name), "matrix": ((2, 3), name)}
    assert BITS[name] == 8 * torch.zeros((), dtype=dtype).element_size()


@pytest.mark.parametrize("word", sorted(DTYPES))
def test_every_dtype_of_the_format(tmp_path: Path, word: str):
    """Eight elements are whole bytes in each of them; the library takes just as many bytes as we
    do.
    """
    size = BITS[DTYPES[word]]
    header = {"a": {"dtype": word, "shape": [8], "data_offsets": [0, size]}}
    assert by_us(write_raw(tmp_path / "a.safetensors", header, size)) == {"a": ((8,), DTYPES[word])}
    assert by_library(tmp_path / "a.safetensors") == {"a": ((8,), DTYPES[word])}


def test_the_library_knows_no_dtype_that_we_do_not(tmp_path: Path):
    path = write_raw(tmp_path / "a.safetensors", {"a": {"dtype": "?", "shape": [], "data_offsets": [0, 0]}})
    with pytest.raises(SafetensorError, match="expected one of") as error, safe_open(path, "pt"):
        pass
    listed = str(error.value).partition("expected one of ")[2].partition(" at line")[0]
    assert {word.strip("`, ") for word in listed.split()} == set(DTYPES)


def test_tensors_without_elements(tmp_path: Path):
    tensors = {"none": torch.zeros(0), "rows": torch.zeros(0, 4), "columns": torch.zeros(4, 0), "one": torch.zeros(1)}
    save_file(tensors, tmp_path / "a.safetensors")
    assert by_us(tmp_path / "a.safetensors") == by_library(tmp_path / "a.safetensors")
    assert by_us(tmp_path / "a.safetensors")["columns"] == ((4, 0), "float32")


def test_metadata(tmp_path: Path):
    metadata = {"format": "pt", "título": 'a "quoted"\n\ttext \\ with é and 😀', "empty": ""}
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors", metadata=metadata)
    assert read_header(tmp_path / "a.safetensors").metadata == metadata


@pytest.mark.parametrize(
    "name", ["w", "größe.重み.😀", 'a"b', "a\\b", "a/b", "", "{}", "h.{}.w", "007", "a b", "N" * 5000]
)
def test_names_come_back_as_they_were(tmp_path: Path, name: str):
    save_file({name: torch.zeros(2)}, tmp_path / "a.safetensors")
    assert by_us(tmp_path / "a.safetensors") == {name: ((2,), "float32")}


def test_escapes_are_read(tmp_path: Path):
    header = '{"\\u0061\\/\\ud83d\\ude00":{"dtype":"\\u00468_E4M3","shape":[4],"data_offsets":[0,4]}}'
    path = write_raw(tmp_path / "a.safetensors", header.replace("\\u00468", "\\u0046\\u0038"), 4)
    assert by_us(path) == by_library(path) == {"a/😀": ((4,), "float8_e4m3fn")}


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)], ids=str)
def test_fields_in_any_order(tmp_path: Path, order: tuple[int, ...]):
    fields = [("dtype", "F16"), ("shape", [2, 3]), ("data_offsets", [0, 12])]
    path = write_raw(tmp_path / "a.safetensors", {"a": dict(fields[place] for place in order)}, 12)
    assert by_us(path) == by_library(path) == {"a": ((2, 3), "float16")}


@pytest.mark.parametrize("space", ["", " ", "\n", "\r\n\t  "], ids=repr)
def test_any_whitespace_between_words(tmp_path: Path, space: str):
    told = {"a": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, "b": header_of({"b": []}, dtype="U8")["b"]}
    told["b"]["data_offsets"] = [12, 13]
    text = json.dumps({"__metadata__": {"x": "y", "z": ""}, **told}, separators=(",", ":"))
    for mark in "{}[]:,":
        text = text.replace(mark, f"{space}{mark}{space}")
    path = write_raw(tmp_path / "a.safetensors", text.lstrip(), 13)
    assert by_us(path) == by_library(path) == {"a": ((2, 3), "float16"), "b": ((), "uint8")}
    assert read_header(path).metadata == {"x": "y", "z": ""}


@pytest.mark.parametrize("header", ["{}", "{ }", "{}   ", '{"__metadata__":{}}', '{"__metadata__" : { } } '])
def test_a_file_without_tensors(tmp_path: Path, header: str):
    path = write_raw(tmp_path / "a.safetensors", header)
    assert read_header(path)[:2] == ([], {})
    assert by_library(path) == {}


def test_tensors_come_in_the_order_of_their_bytes(tmp_path: Path):
    header = header_of({"first": (2,), "second": (3,)})
    path = write_raw(tmp_path / "a.safetensors", dict(reversed(header.items())), 20)
    assert read_header(path).tensors == [
        StoredTensor("first", "float32", (2,), 0, 8),
        StoredTensor("second", "float32", (3,), 8, 20),
    ]


# -- what breaks the format -----------------------------------------------------------------------

A = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
BROKEN: dict[str, tuple[Any, int, str]] = {  # header, bytes of data, what the message must say
    "no object": ("[]", 0, "expected a {"),
    "a byte order mark": ("\ufeff{}", 0, "expected a {"),
    "nothing": ("", 0, "expected a {"),
    "not closed": ('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}', 4, "malformed"),
    "words after it": (json.dumps({"a": A}) + " x", 4, "nothing after the header's end"),
    "a comma too many": (json.dumps({"a": A})[:-1] + ",}", 4, "malformed"),
    "a comma too many in a tensor": ('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],}}', 4, "malformed"),
    "a comma too many in a shape": ('{"a":{"dtype":"U8","shape":[4,],"data_offsets":[0,4]}}', 4, "malformed"),
    "a number for a tensor": ({"a": 1}, 0, "malformed"),
    "another quote": ("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}", 4, "malformed"),
    "a control character in a name": ('{"a\n":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4, "malformed"),
    "half a surrogate pair": ('{"__metadata__":{"a":"\\ud800"}}', 0, "malformed string"),
    "an unknown escape": ('{"\\x41":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4, "malformed string"),
    "not UTF-8": (b'{"\xff":{}}', 0, "not UTF-8 at its byte 2"),
    "metadata that is not text": ({"__metadata__": {"a": 1}}, 0, "malformed"),
    "a negative size": ({"a": {**A, "shape": [-4]}}, 4, "malformed"),
    "a fraction": ({"a": {**A, "shape": [4.0]}}, 4, "malformed"),
    "an exponent": ('{"a":{"dtype":"U8","shape":[4e0],"data_offsets":[0,4]}}', 4, "malformed"),
    "a leading zero": ('{"a":{"dtype":"U8","shape":[04],"data_offsets":[0,4]}}', 4, "malformed"),
    "another script's digit": ('{"a":{"dtype":"U8","shape":[1٢],"data_offsets":[0,12]}}', 12, "malformed"),
    "a nested shape": ({"a": {**A, "shape": [[4]]}}, 4, "malformed"),
    "a flag for a size": ({"a": {**A, "shape": [True]}}, 1, "malformed"),
    "a negative offset": ({"a": {**A, "data_offsets": [-4, 0]}}, 4, "malformed"),
    "offsets reversed": ({"a": {**A, "data_offsets": [4, 0]}}, 4, "span -4"),
    "one offset": ({"a": {**A, "data_offsets": [4]}}, 4, r"expected.*\[start, end\]"),
    "three offsets": ({"a": {**A, "data_offsets": [0, 2, 4]}}, 4, r"expected.*\[start, end\]"),
    "no offset": ({"a": {**A, "data_offsets": []}}, 4, r"expected.*\[start, end\]"),
    "bytes that the shape does not need": ({"a": {**A, "data_offsets": [0, 5]}}, 5, "needs 4 bytes"),
    "bytes that the dtype does not need": ({"a": {**A, "dtype": "F16"}}, 4, "dtype float16 needs 8 bytes"),
    "half a byte": ({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}}, 2, r"needs 1\.5 bytes"),
    "an unknown dtype": ({"a": {**A, "dtype": "U9"}}, 4, "unknown dtype 'U9'; nearest: U8"),
    "a dtype in small letters": ({"a": {**A, "dtype": "u8"}}, 4, "unknown dtype 'u8'"),
    "one beyond 2^64 with a zero": ({"a": {**A, "shape": [2**40, 2**40, 0], "data_offsets": [0, 0]}}, 0, "more than 2.64 bits"),
    "a shape beyond 2^64": ({"a": {**A, "shape": [2**32, 2**32]}}, 4, "more than 2.64 bits"),
    "a size of 2^64": ({"a": {**A, "shape": [2**64, 0]}}, 4, "a size of 2.64 or more"),
    "an offset of 2^64": ({"a": {**A, "shape": [0], "data_offsets": [2**64, 2**64]}}, 0, "data_offsets beyond 2.64"),
    "a size of twenty-one digits": ({"a": {**A, "shape": [10**20]}}, 4, "malformed"),
    "metadata twice": ('{"__metadata__":{},"__metadata__":{}}', 0, "has __metadata__ twice"),
    "metadata twice, once null": ('{"__metadata__":null,"__metadata__":{}}', 0, "has __metadata__ twice"),
    "a list as metadata": ('{"__metadata__":[]}', 0, "malformed"),
    "a tensor as metadata": ({"__metadata__": A}, 4, "more than text"),
    "a tensor as metadata, escaped": (json.dumps({"__metadata__": A}).replace("_m", "\\u005fm"), 4, "more than text"),
    "zeros after it": ("{}\0\0", 0, "nothing after the header's end"),
    "a field missing": ({"a": {"dtype": "U8", "shape": [4]}}, 4, "has no data_offsets"),
    "a field twice": ('{"a":{"dtype":"U8","dtype":"U8","data_offsets":[0,4]}}', 4, "the field dtype twice"),
    "a field twice, escaped": ('{"a":{"dtype":"U8","shape":[4],"\\u0073hape":[4],"data_offsets":[0,4]}}', 4, "the field shape twice"),
    "a list of four fields": ('{"a":["U8",[4],[0,4],1]}', 4, "malformed"),
    "a dtype with a value": ('{"a":{"dtype":{"U8":1},"shape":[4],"data_offsets":[0,4]}}', 4, "malformed"),
    "another field that is broken": (json.dumps({"a": A}).replace("}}", ', "x": [1,]}}'), 4, "malformed"),
    "another field with a number beyond floats": (json.dumps({"a": A}).replace("}}", ', "x": 1e999}}'), 4, "too large"),
    "another field with half a surrogate": (json.dumps({"a": A}).replace("}}", ', "x": "\\udc00"}}'), 4, "malformed string"),
    "another field nested too deeply": (json.dumps({"a": A}).replace("}}", f', "x": {"[" * 126 + "]" * 126}}}}}'), 4, "nests more than 127"),
    "the last of one name with bytes that do not fit": (json.dumps({"a": A})[:-1] + ',"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}}', 4, "needs 3 bytes"),
    "one name twice with a hole": (json.dumps({"a": A})[:-1] + ',"a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}', 5, "leaves a gap"),
    "an overlap": ({"a": A, "b": {**A, "data_offsets": [2, 6]}}, 6, "'b' starts at byte 2 of the data and overlaps"),
    "the same bytes twice": ({"a": A, "b": A}, 4, "overlaps"),
    "a gap": ({"a": A, "b": {**A, "data_offsets": [5, 9]}}, 9, "leaves a gap"),
    "a gap at the start": ({"a": {**A, "data_offsets": [1, 5]}}, 5, "leaves a gap"),
    "an empty tensor inside another": (
        {"a": A, "b": {"dtype": "U8", "shape": [0], "data_offsets": [2, 2]}}, 4, "overlaps"
    ),
    "data cut off": ({"a": A}, 3, "truncated: the tensors end at byte 4"),
    "data in addition": ({"a": A}, 5, "bytes that no tensor holds"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_headers_are_refused(tmp_path: Path, what: str):
    header, data, message = BROKEN[what]
    path = write_raw(tmp_path / "a.safetensors", header, data)
    with pytest.raises(BadInput, match=message) as error:
        read_header(path)
    assert str(error.value).isprintable()
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 400 + len(str(path))
    with pytest.raises((SafetensorError, UnicodeDecodeError)), safe_open(path, "pt"):
        pass


FIELDS = '"dtype":"U8","shape":[4],"data_offsets":[0,4]'
ACCEPTED: dict[str, tuple[Any, int]] = {  # header, with @ for the fields of a tensor; bytes of data
    "a space before it": (' \n{"a":{@}}', 4),
    "null for metadata": ('{"__metadata__":null,"a":{@}}', 4),
    "metadata with an escaped name": ('{"\\u005f_metadata__":{"x":"y"},"a":{@}}', 4),
    "a metadata key with a line break": ('{"__metadata__":{"a\\nb\\u001b":"c\\nd\\u0000"},"a":{@}}', 4),
    "a metadata key twice": ('{"__metadata__":{"x":"y","x":"z"},"a":{@}}', 4),
    "metadata after tensors": ('{"a":{@} , "__metadata__" : { "x" : "y" } }', 4),
    "another field": ('{"a":{@,"extra":1}}', 4),
    "other fields of each kind": (
        '{"a":{"x":{"y":[ ],"z":[1,-2.5e3,true,false,null,"\\ud83d\\ude00",{}]} , @,"x":{"u":{"v":[[[0]]]}},"":-0}}', 4
    ),
    "another field nested deeply": ('{"a":{@,"x":' + "[" * 125 + "]" * 125 + "}}", 4),
    "another field with a large number": ('{"a":{@,"x":[' + "9" * 308 + ",1e300,0e999999]}}", 4),
    "the three values alone": ('{"a":["U8",[4],[0,4]]}', 4),
    "a dtype as an object": ('{"a":{"dtype": {"U8" : null} ,"shape":[4],"data_offsets":[0,4]}}', 4),
    "escaped fields": ('{"a":{"\\u0064type":"U8","shape":[4],"data_offsets":[0,4]}}', 4),
    "one name twice": ('{"a":{@},"a":{@}}', 4),
    "one name twice, escaped": ('{"a":{@},"\\u0061":{@}}', 4),
    "one name twice, the first with bytes that do not fit": ('{"a":{"dtype":"F64","shape":[9],"data_offsets":[7,9]},"a":{@}}', 4),
    "a name that cannot be shown": ({"a\x1b[2J\0\n\x7f\x85\u202e": A}, 4),
    "a name with spaces": ({" a\xa0b ": A}, 4),
    "no name": ({"": A}, 4),
    "sixty-five dimensions": ({"a": {**A, "shape": [1] * 64 + [4]}}, 4),
    "a zero before sizes beyond 2^64": ({"a": {**A, "shape": [0, 2**64 - 1, 2**64 - 1], "data_offsets": [0, 0]}}, 0),
    "a size of twenty digits": ({"a": {**A, "shape": [2**64 - 1, 0], "data_offsets": [0, 0]}}, 0),
}  # fmt: skip


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_the_library_accepts_is_read_as_it_reads_it(tmp_path: Path, what: str):
    header, data = ACCEPTED[what]
    text = header if isinstance(header, str) else json.dumps(header)
    path = write_raw(tmp_path / "a.safetensors", text.replace("@", FIELDS), data)
    assert by_us(path) == by_library(path)
    with safe_open(path, "pt") as file:
        assert read_header(path).metadata == (file.metadata() or {})


def test_values_that_nobody_asks_for_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_raw(tmp_path / "a.safetensors", '{"a":{"x":[' + "1," * 1_200_000 + "1]}}")
    with pytest.raises(BadInput, match="the header's entry at character 1 has more than 1,048,576 characters"):
        read_header(path)
    monkeypatch.setattr(budget, "SECONDS", 0.5)  # attacks/ reach the seconds that there are
    field = '"x%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":[' + "[]," * 300_000 + "1]}"
    path = write_raw(tmp_path / "a.safetensors", "{" + ",".join(field % place for place in range(20)) + "}")
    with pytest.raises(BadInput, match=r"reading it takes more than 0\.5 seconds"), one_source():
        read_header(path)
    path = write_raw(tmp_path / "a.safetensors", {"a": {**A, "shape": [1] * 1000 + [4]}}, 4)
    with pytest.raises(BadInput, match="'a' has more than 1,000 dimensions"):
        read_header(path)


def test_lengths_that_cannot_be(tmp_path: Path):
    path = tmp_path / "a.safetensors"
    for length, message in [(3, "truncated"), (LARGEST_HEADER, "truncated"), (2**64 - 1, "claims 18,446"), (1, "malf")]:
        write_raw(path, "{}", length=length)
        with pytest.raises(BadInput, match=message):
            read_header(path)
    write_raw(path, "{}", length=LARGEST_HEADER + 1)
    with pytest.raises(BadInput, match="claims 100,000,001 bytes, more than the format's 100,000,000"):
        read_header(path)
    for short in (b"", b"{}", b"\0" * 7):
        path.write_bytes(short)
        with pytest.raises(BadInput, match="is empty" if not short else "too short"):
            read_header(path)


def test_the_largest_header_is_the_librarys(tmp_path: Path):
    """A hole in the file reads as zeros, so both refuse the header; only one of them for its
    length.
    """
    for length, refused in [(LARGEST_HEADER, False), (LARGEST_HEADER + 1, True)]:
        with (tmp_path / "a.safetensors").open("wb") as file:
            file.write(length.to_bytes(8, "little"))
            file.truncate(8 + length)
        with pytest.raises(SafetensorError) as error, safe_open(tmp_path / "a.safetensors", "pt"):
            pass
        assert ("too large" in str(error.value)) is refused
