"""GGUF: what llama.cpp's own library writes, a small writer's files byte by byte, and files that
are broken or lie.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest

import tallystick
from checkpoint_models import noted
from gguf_files import (
    BYTES,
    F16,
    F32,
    LLAMA,
    MXFP4,
    Q2_0,
    Q4_0,
    Q8_0,
    gguf,
    llama,
    text,
    written,
)
from hostile import memory_of, mutations, refusal, refused_at_every_byte, survives
from tallystick import count
from tallystick.core.dtypes import BLOCKS
from tallystick.formats.gguf_types import TENSOR_TYPES

ATTENTION, MLP, EMBEDDING = 2 * (2 * 256 * 256 + 2 * 64 * 256), 2 * 3 * 512 * 256, 100 * 256
LLAMA_TOTAL = EMBEDDING + ATTENTION + MLP + 5 * 256


@pytest.mark.parametrize("version", [2, 3])
def test_elements_are_those_of_the_model_and_bytes_those_of_the_file(tmp_path: Path, version: int):
    ledger = count(written(tmp_path / "a.gguf", llama(head=False), LLAMA, version=version))
    assert (ledger.kind, ledger.architecture) == ("gguf", "llama")
    assert ledger.total == LLAMA_TOTAL
    in_six_bits = EMBEDDING + 2 * (64 * 256 + 512 * 256)
    in_four_bits = ATTENTION + MLP - 2 * (64 * 256 + 512 * 256)
    assert ledger.by("dtype") == {"q6_k": in_six_bits, "float32": 5 * 256, "q4_k": in_four_bits}
    assert ledger.totals["bytes"] == in_six_bits // 256 * 210 + in_four_bits // 256 * 144 + 4 * 5 * 256
    assert ledger.totals["stored_bytes"] == ledger.totals["bytes"] + 4 * 32
    assert ledger.totals["buffers"] == 32
    assert ledger.tensors["blk.1.ffn_down.weight"].shape == (256, 512)  # rows first, as torch has it
    assert not noted(ledger, "hold integers")


def test_names_tell_roles(tmp_path: Path):
    ledger = count(written(tmp_path / "a.gguf", llama(), LLAMA))
    assert ledger.by("role") == {
        "token_embedding": EMBEDDING, "attention": ATTENTION, "mlp": MLP, "norm": 5 * 256, "head": EMBEDDING
    }  # fmt: skip
    assert ledger.ties == ()


def test_a_head_that_is_not_stored_is_the_embedding(tmp_path: Path):
    ledger = count(written(tmp_path / "a.gguf", llama(head=False), LLAMA))
    assert [(tie.names, tie.relation, tie.parameters) for tie in ledger.ties] == [
        (("token_embd.weight", "output.weight"), "tied", EMBEDDING)
    ]
    assert tallystick.ties(ledger).verdict == "consistent"


@pytest.mark.parametrize(
    "metadata",
    [
        {"general.architecture": "bert", "bert.attention.causal": False},
        {"general.architecture": "gemma-embedding", "gemma-embedding.pooling_type": 1},
        {"general.architecture": "llama", "general.type": "adapter"},
    ],
)
def test_an_encoder_and_an_adapter_have_no_head(tmp_path: Path, metadata: dict[str, Any]):
    assert count(written(tmp_path / "a.gguf", llama(head=False), metadata)).ties == ()


def test_a_head_stored_beside_an_equal_embedding_is_a_copy(tmp_path: Path):
    tensors = {"token_embd.weight": ((32, 32), F16), "output.weight": ((32, 32), F16)}
    content = bytearray(gguf(tensors, LLAMA))
    content[-4096:] = bytes(range(256)) * 16  # two tensors of 2,048 bytes
    (tmp_path / "a.gguf").write_bytes(content)
    assert [group.relation for group in tallystick.ties(tmp_path / "a.gguf").groups] == ["copied"]
    content[-1] ^= 1
    (tmp_path / "a.gguf").write_bytes(content)
    assert tallystick.ties(tmp_path / "a.gguf").groups == ()


def test_experts_that_a_token_leaves_idle_are_told_by_the_metadata(tmp_path: Path):
    tensors = {
        "blk.0.ffn_gate_inp.weight": ((8, 32), F32), "blk.0.ffn_gate_exps.weight": ((8, 64, 32), MXFP4),
        "blk.0.ffn_gate_shexp.weight": ((64, 32), Q8_0), "blk.0.exp_probs_b.bias": ((8,), F32),
    }  # fmt: skip
    metadata = {"general.architecture": "qwen3moe", "qwen3moe.expert_count": 8, "qwen3moe.expert_used_count": 2}
    ledger = count(written(tmp_path / "a.gguf", tensors, metadata))
    assert ledger.by("role") == {"mlp": 64 * 32, "experts": 8 * 64 * 32, "router": 8 * 32}
    assert ledger.totals["active"] == 64 * 32 + 2 * 64 * 32 + 8 * 32
    assert ledger.totals["buffers"] == 8  # what balances the experts
    assert ledger.totals["bytes"] == 64 * 34 * 1 + 8 * 64 * 17 + 4 * 8 * 32
    assert count(written(tmp_path / "a.gguf", tensors, {"general.architecture": "qwen3moe"})).totals["active"] is None


def test_parts_are_one_model_whichever_is_named(tmp_path: Path):
    whole = llama(head=False)
    names = list(whole)
    for number, some in enumerate((names[:7], names[7:]), start=1):
        metadata = {**(LLAMA if number == 1 else {}), "split.no": number - 1, "split.count": 2}
        written(tmp_path / f"a-0000{number}-of-00002.gguf", {name: whole[name] for name in some}, metadata)
    for source in (tmp_path, tmp_path / "a-00001-of-00002.gguf", tmp_path / "a-00002-of-00002.gguf"):
        assert count(source).total == LLAMA_TOTAL
        assert len(count(source).ties) == 1
    (tmp_path / "a-00002-of-00002.gguf").rename(tmp_path / "b.gguf")
    assert "one of 2 parts, of which 1 are missing from its folder: 'a-00002-of-00002.gguf'" in refusal(
        tmp_path / "a-00001-of-00002.gguf"
    )
    assert noted(count(tmp_path / "b.gguf"), "only one of 2 parts")


def test_a_folder_of_several_models_asks_which(tmp_path: Path):
    for name in ("a-Q4_K.gguf", "a-Q8_0.gguf"):
        written(tmp_path / name, llama(), LLAMA)
    assert "holds 2 files of weights, such as 'a-Q4_K.gguf': name one of them" in refusal(tmp_path)
    (tmp_path / "a-Q8_0.gguf").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')  # whose names are others
    assert count(tmp_path).mismatches == {}
    assert count(tmp_path).total == LLAMA_TOTAL + EMBEDDING


def test_an_alignment_of_its_own(tmp_path: Path):
    metadata = {**LLAMA, "general.alignment": 64}
    assert count(written(tmp_path / "a.gguf", llama(), metadata, alignment=64)).total == LLAMA_TOTAL + EMBEDDING
    assert "not a multiple of 64" in refusal(
        written(tmp_path / "a.gguf", {"a": ((8,), F32), "b": ((8,), F32)}, metadata)
    )


def test_what_is_asked_of_a_count_can_be_asked_of_it(tmp_path: Path):
    path = written(tmp_path / "a.gguf", llama(head=False), LLAMA)
    assert tallystick.memory(path).to_dict()["weights_bytes"] == count(path).totals["bytes"]
    assert tallystick.memory(path, dtype="float16").to_dict()["weights_bytes"] == 2 * LLAMA_TOTAL
    other = written(tmp_path / "b.gguf", llama(), LLAMA)
    assert tallystick.compare(path, other).gap == EMBEDDING
    assert "output.weight is not tied to token_embd.weight, unlike in" in tallystick.compare(path, other).sentence


# -- the peers' own library -----------------------------------------------------------------------


def test_sizes_of_blocks_are_those_of_the_formats_own_library():
    constants = pytest.importorskip("gguf.constants")
    sizes = {kind.name.lower(): size for kind, size in constants.GGML_QUANT_SIZES.items() if size[0] > 1}
    assert {name: tuple(BLOCKS[name]) for name in sizes} == sizes
    assert BLOCKS.keys() - sizes.keys() <= {"q2_0"}  # which ggml has, and gguf 0.19 not


def test_numbers_of_types_are_those_of_the_formats_own_library():
    constants = pytest.importorskip("gguf.constants")
    words = {"f": "float", "bf": "bfloat", "i": "int"}  # F32 of ggml is float32 of torch
    numbers = {
        int(kind): re.sub(r"^(b?f|i)(?=\d+$)", lambda found: words[found[0]], kind.name.lower())
        for kind in constants.GGMLQuantizationType
    }
    assert {number: name for number, name in TENSOR_TYPES.items() if name != "q2_0"} == numbers


@pytest.mark.parametrize("version", [2, 3])
def test_a_big_endian_file_is_counted_as_a_little_endian_one(tmp_path: Path, version: int):
    metadata = {**LLAMA, "llama.attention.head_count": 4, "split.count": 1, "flag": True}
    little = written(tmp_path / "a.gguf", llama(), metadata, version=version)
    big = written(tmp_path / "b.gguf", llama(), metadata, version=version, order=">")
    assert count(big).to_dict(by="tensor")["rows"] == count(little).to_dict(by="tensor")["rows"]
    assert count(big).architecture == "llama"
    assert noted(count(big), "its numbers are big-endian: llama.cpp reads it only on big-endian machines")
    assert not noted(count(little), "big-endian")


def test_q2_0_is_counted_by_ggml_s_struct(tmp_path: Path):
    """A half and 64 values of two bits: 18 bytes."""
    ledger = count(written(tmp_path / "a.gguf", {"token_embd.weight": ((10, 128), Q2_0)}, LLAMA))
    assert (ledger.total, ledger.totals["bytes"]) == (1280, 10 * 2 * (2 + 64 // 4))
    assert ledger.by("dtype") == {"q2_0": 1280}


@pytest.mark.parametrize("order", ["LITTLE", "BIG"])
def test_what_the_formats_own_library_writes(tmp_path: Path, order: str):
    library, numpy = pytest.importorskip("gguf"), pytest.importorskip("numpy")
    writer = library.GGUFWriter(tmp_path / "a.gguf", "llama", endianess=library.GGUFEndian[order])
    writer.add_block_count(2)
    writer.add_token_list(["a", "b"])
    for name, (shape, kind) in llama(head=False).items():
        elements, size = BYTES[kind]
        if kind == F32:
            writer.add_tensor(name, numpy.zeros(shape, numpy.float32))
        else:
            packed = (*shape[:-1], shape[-1] // elements * size)
            writer.add_tensor(name, numpy.zeros(packed, numpy.uint8), raw_dtype=library.GGMLQuantizationType(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert (
        count(tmp_path / "a.gguf").to_dict(by="tensor")["rows"]
        == count(written(tmp_path / "b.gguf", llama(head=False), LLAMA)).to_dict(by="tensor")["rows"]
    )
    read = library.GGUFReader(tmp_path / "b.gguf")  # and it reads ours
    assert sum(int(tensor.n_elements) for tensor in read.tensors) == LLAMA_TOTAL + 32


# -- what is broken -------------------------------------------------------------------------------

ONE = {"a": ((8, 32), F32)}


def patched(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) == 1
    return content.replace(old, new)


SOUND = gguf(ONE, LLAMA)
BROKEN = {
    "version 1": (patched(SOUND, b"GGUF\x03\0\0\0", b"GGUF\x01\0\0\0"), "has GGUF version 1, expected 2 or 3: convert it again"),
    "version 4": (patched(SOUND, b"GGUF\x03\0\0\0", b"GGUF\x04\0\0\0"), "has GGUF version 4, expected 2 or 3"),
    "half of it big-endian": (patched(SOUND, b"GGUF\x03\0\0\0", b"GGUF\0\0\0\x03"), "too many for a file of 1,312 bytes"),
    "version 1 in big-endian": (patched(SOUND, b"GGUF\x03\0\0\0", b"GGUF\0\0\0\x01"), "has GGUF version 1, expected 2 or 3"),
    "a key twice": (gguf(ONE, {"a.b": 1, "a.c": 1}).replace(b"a.c", b"a.b"), "has the key 'a.b' twice"),
    "tensors beyond count": (patched(SOUND, struct.pack("<QQ", 1, 4), struct.pack("<QQ", 2**64 - 1, 4)), "too many for a file of 1,312 bytes"),
    "keys beyond count": (patched(SOUND, struct.pack("<QQ", 1, 4), struct.pack("<QQ", 1, 2**63)), "too many for a file of 1,312 bytes"),
    "more tensors": (patched(SOUND, struct.pack("<QQ", 1, 4), struct.pack("<QQ", 9, 4)), "is truncated|dimensions|type|bytes|overlaps"),
    "a text beyond the file": (patched(SOUND, text("llama"), struct.pack("<Q", 2**62) + b"llama"), "'general.architecture' would end"),
    "a key beyond the file": (patched(SOUND, text("llama.block_count"), struct.pack("<Q", 60000)), "a key of the metadata would end"),
    "a long key": (patched(SOUND, text("llama.block_count"), struct.pack("<Q", 2**40)), "has 1,099,511,627,776 bytes, more than 65,536"),
    "a list beyond the file": (patched(SOUND, struct.pack("<IIQ", 9, 8, 3), struct.pack("<IIQ", 9, 4, 2**61)), "would end"),
    "a list of too many words": (patched(SOUND, struct.pack("<IIQ", 9, 8, 3), struct.pack("<IIQ", 9, 8, 2**50)), "takes more than 10,000,000 steps"),
    "a list of lists": (patched(SOUND, struct.pack("<IIQ", 9, 8, 3), struct.pack("<IIQ", 9, 9, 3)), "neither text nor numbers"),
    "an unknown type of value": (patched(SOUND, struct.pack("<IIQ", 9, 8, 3), struct.pack("<IIQ", 13, 8, 3)), "has the unknown type 13"),
    "an unknown type": (gguf({"a": ((8, 32), MXFP4)}, LLAMA).replace(struct.pack("<I", 39), struct.pack("<I", 38)), "the unknown ggml type 38"),
    "a row that is no whole block": (gguf({"a": ((8, 33), Q4_0)}, LLAMA), "rows of 33 elements, but q4_0 packs 32 together"),
    "five dimensions": (gguf({"a": ((1,) * 5, F32)}, LLAMA), "has 5 dimensions, more than the 4"),
    "a shape beyond 2^63": (gguf({"a": ((2**40, 2**40), F32)}, LLAMA, data=False)[:400], "more than 2.63 elements"),
    "one name twice": (gguf({"a": ((8,), F32), "b": ((8,), F32)}, {}).replace(text("b"), text("a")), "two tensors have the same name"),
    "an overlap": (gguf({"a": ((8,), F32), "b": ((8,), F32)}, {}).replace(struct.pack("<IQ", 0, 32), struct.pack("<IQ", 0, 0)), "overlaps"),
    "no data": (gguf(ONE, LLAMA, data=False), "but the file has .*: it is truncated"),
    "an alignment of zero": (gguf(ONE, {"general.alignment": 0}), "general.alignment is 0"),
    "an alignment that is none": (gguf(ONE, {"general.alignment": 24}), "general.alignment is 24"),
    "an alignment that is a word": (gguf(ONE, {"general.alignment": "x"}), "general.alignment has the type 8, expected 4"),
    "an alignment that is a flag": (gguf(ONE, {"general.alignment": True}), "general.alignment has the type 7"),
    "another file": (b"not a model at all" * 9, "is not a GGUF file: it begins with b'not '"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "is a Git LFS pointer"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(tmp_path: Path, what: str):
    content, message = BROKEN[what]
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    assert re.search(message, refusal(path)), refusal(path)
    assert memory_of(path) < 1_000_000


def test_a_file_cut_off_at_any_byte_is_refused(tmp_path: Path):
    refused_at_every_byte(tmp_path / "a.gguf", gguf({"token_embd.weight": ((2, 8), F32)}, LLAMA))


def test_a_changed_file_is_counted_or_refused(tmp_path: Path):
    content = gguf({"token_embd.weight": ((2, 8), F32), "blk.0.x": ((32,), Q4_0)}, LLAMA)
    assert survives(tmp_path / "a.gguf", mutations(content, most=500))


def test_many_tensors_and_words_are_read_in_little_room(tmp_path: Path):
    tensors = {f"blk.{number}.ffn_up.weight": ((2, 4), F32) for number in range(3000)}
    path = written(tmp_path / "a.gguf", tensors, {**LLAMA, "tokenizer.ggml.tokens": ["word"] * 100_000})
    assert count(path).total == 3000 * 8
    assert memory_of(path) < 10_000_000
