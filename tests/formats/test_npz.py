"""NumPy's archives: what numpy writes is counted by headers alone, and what is no plain array is
refused.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import tallystick
from checkpoint_models import TINY, TINY_SHAPES, TINY_UNIQUE, noted
from checkpoints import write_config
from hostile import memory_of, mutations, refusal, refused_at_every_byte, survives
from tallystick import count

DTYPES = {
    "f2": "float16", "f4": "float32", "f8": "float64", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8",
    "u2": "uint16", "u4": "uint32", "u8": "uint64", "?": "bool", "c8": "complex64", "c16": "complex128", ">f4": "float32",
}  # fmt: skip


@pytest.mark.parametrize("code", DTYPES)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_dtype_of_numpy_that_weights_have(tmp_path: Path, code: str, save):
    dtype = np.dtype(code)
    save(tmp_path / "a.npz", scalar=np.zeros((), dtype), matrix=np.zeros((2, 3), dtype), none=np.zeros((0, 4), dtype))
    ledger = count(tmp_path / "a.npz")
    word = DTYPES[code]
    assert {(entry.name, entry.shape, entry.dtype) for entry in ledger.entries} == {
        ("scalar", (), word), ("matrix", (2, 3), word), ("none", (0, 4), word)
    }  # fmt: skip
    assert (ledger.kind, ledger.total) == ("npz", 7)
    assert ledger.totals["stored_bytes"] == 7 * dtype.itemsize


def test_a_model_in_it_is_told_by_the_config_beside_it(tmp_path: Path):
    np.savez(tmp_path / "weights.npz", **{name: np.zeros(shape, np.float32) for name, shape in TINY_SHAPES.items()})
    write_config(tmp_path, TINY)
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches, ledger.architecture) == (TINY_UNIQUE, {}, "gpt2")
    assert ledger.by("role") == count(TINY).by("role")


def test_names_with_slashes_tell_roles(tmp_path: Path):
    arrays = {
        "params/wte/embedding": (5, 4), "params/h/0/attn/c_attn/kernel": (4, 12), "params/h/0/ln_1/scale": (4,),
        "params/h/0/mlp/c_fc/kernel": (4, 16), "params/lm_head/kernel": (4, 5),
    }  # fmt: skip
    np.savez(tmp_path / "a.npz", **{name: np.zeros(shape, np.float32) for name, shape in arrays.items()})
    assert count(tmp_path / "a.npz").by("role") == {
        "token_embedding": 20, "attention": 48, "mlp": 64, "norm": 4, "head": 20
    }  # fmt: skip


def test_values_are_compared(tmp_path: Path):
    weight = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    np.savez(tmp_path / "a.npz", **{"wte.weight": weight, "lm_head.weight": weight})
    assert [group.relation for group in tallystick.ties(tmp_path / "a.npz").groups] == ["copied"]
    np.savez(tmp_path / "a.npz", **{"wte.weight": weight, "lm_head.weight": weight + 1})
    assert [group.relation for group in tallystick.ties(tmp_path / "a.npz").groups] == ["untied"]


def test_what_jax_saves_of_bfloat16_is_said(tmp_path: Path):
    np.savez(tmp_path / "a.npz", w=np.zeros((2, 3), "V2"))
    assert count(tmp_path / "a.npz").by("dtype") == {"bfloat16": 6}
    assert noted(count(tmp_path / "a.npz"), "read as bfloat16")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([{"a": 1}], dtype=object), "holds pickled Python objects, which were not run"),
        (np.array(["text"]), "has the dtype <U4, which weights never have"),
        (np.zeros(2, "M8[s]"), "does not have the header of a plain array"),
        (np.zeros(2, [("x", "f4")]), "does not have the header of a plain array"),
        (np.zeros(2, "V3"), "has the dtype |V3"),
    ],
)
def test_what_is_no_plain_array_is_refused(tmp_path: Path, array: np.ndarray, message: str):
    np.savez(tmp_path / "a.npz", w=array)
    assert message in refusal(tmp_path / "a.npz")


def npy(header: str, data: bytes = b"", *, version: bytes = b"\x01\0", length: int | None = None) -> bytes:
    width = 2 if version[:1] == b"\x01" else 4
    return (
        b"\x93NUMPY"
        + version
        + (len(header) if length is None else length).to_bytes(width, "little")
        + header.encode()
        + data
    )


PLAIN = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(PLAIN, bytes(8)), ""),
        (npy(PLAIN, bytes(8), version=b"\x02\0"), ""),
        (npy(PLAIN, bytes(8), version=b"\x03\0"), ""),
        (npy(PLAIN, bytes(8), version=b"\x04\0"), "does not begin with numpy's magic bytes"),
        (npy(PLAIN, bytes(7)), "needs 8 bytes, but its member has 7"),
        (npy(PLAIN, bytes(9)), "needs 8 bytes, but its member has 9"),
        (npy(PLAIN, length=60_000), "a header of 60,000 bytes"),
        (npy(PLAIN, version=b"\x02\0", length=2**32 - 1), "a header of 4,294,967,295 bytes"),
        (npy(PLAIN.replace("(2,)", "(9223372036854775807, 9223372036854775807)")), "more than 2^63 elements"),
        (npy(PLAIN.replace("(2,)", "(-2,)")), "does not have the header of a plain array"),
        (npy(PLAIN.replace("(2,)", "(" * 5000)), "does not have the header of a plain array"),
        (
            npy(PLAIN.replace("False", "__import__('os').system('touch sprung')")),
            "does not have the header of a plain array",
        ),
        (npy(PLAIN.replace("(2,)", f"({'1, ' * 1000}2)"), bytes(8)), "more than 1,000 dimensions"),
        (b"", "does not begin with numpy's magic bytes"),
        (b"\x93NUM", "does not begin with numpy's magic bytes"),
    ],
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_headers_are_read_as_numpy_writes_them_and_no_other_way(
    tmp_path: Path, content: bytes, message: str, method: int
):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("w.npy", content)
    assert message in refusal(tmp_path / "a.npz")
    assert bool(message) is bool(refusal(tmp_path / "a.npz"))


def test_other_members_and_no_members_are_refused(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w"):
        pass
    assert "cannot be read" in refusal(tmp_path / "a.npz") or "holds no arrays" in refusal(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert "'readme.txt' is not an array" in refusal(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("../w.npy", npy(PLAIN, bytes(8)))
    assert "a name that leads out of the archive" in refusal(tmp_path / "a.npz")


def test_an_array_that_swells_is_counted_without_being_inflated(tmp_path: Path):
    np.savez_compressed(tmp_path / "a.npz", w=np.zeros((1 << 23, 4), np.float32))
    assert (tmp_path / "a.npz").stat().st_size < 200_000
    assert count(tmp_path / "a.npz").total == 1 << 25
    assert memory_of(tmp_path / "a.npz") < 1_000_000


def test_a_file_cut_off_at_any_byte_is_refused(tmp_path: Path):
    np.savez(tmp_path / "a.npz", w=np.zeros(3, np.float32))
    refused_at_every_byte(tmp_path / "a.npz", (tmp_path / "a.npz").read_bytes())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_changed_file_is_counted_or_refused(tmp_path: Path, save):
    save(tmp_path / "a.npz", **{"wte.weight": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.float16)})
    assert survives(tmp_path / "a.npz", mutations((tmp_path / "a.npz").read_bytes(), most=300))


def test_sizes_in_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As above 4 GiB: what does not fit in 32 bits is in an extra field, in eight bytes each."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1)
    np.savez(tmp_path / "a.npz", first=np.zeros((2, 3)), second=np.ones((4, 5)))
    assert (tmp_path / "a.npz").read_bytes().count(b"\xff" * 8) == 4  # two sizes, twice for each member
    assert {entry.name: entry.shape for entry in count(tmp_path / "a.npz").entries} == {
        "first": (2, 3),
        "second": (4, 5),
    }
