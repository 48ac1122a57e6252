"""Files of torch.save: counted as the same model's safetensors are, and refused where they are
broken or would harm.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from checkpoint_models import TINY, TINY_SHAPES, noted, parameters, small_model
from checkpoints import write_config
from hostile import memory_of, mutations, refusal, refused_at_every_byte, survives
from tallystick import BadInput, count, ties
from tallystick.core import budget
from torch_forms import FORMS, save
from weights import small, write_nanogpt

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
    "complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz",
]  # fmt: skip


def told(path: Path) -> dict[str, tuple[tuple[int, ...], str, int]]:
    """Shape, dtype and new elements of each tensor that is counted in a file."""
    return {entry.name: (entry.shape, entry.dtype, entry.unique) for entry in count(path).entries}


# -- what torch and transformers save -------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("kind", ["gpt2", "llama", "mixtral", "gemma3n_text", "opt", "bamba"])
def test_it_is_counted_as_the_safetensors_of_the_same_model_are(tmp_path: Path, kind: str, tied: bool, zipped: bool):
    model = small_model(kind, tie_word_embeddings=tied)
    model.save_pretrained(tmp_path / "safe")
    (tmp_path / "pickled").mkdir()
    shutil.copy(tmp_path / "safe/config.json", tmp_path / "pickled")
    save(tmp_path / "pickled/pytorch_model.bin", model.state_dict(), zipped=zipped)
    safe, pickled = count(tmp_path / "safe"), count(tmp_path / "pickled")
    assert pickled.kind == "torch"
    assert pickled.total == parameters(model)
    assert pickled.totals == safe.totals
    assert pickled.by("role") == safe.by("role")
    assert pickled.mismatches == {}
    assert [(set(tie.names), tie.relation) for tie in pickled.ties] == [
        (set(tie.names), tie.relation) for tie in safe.ties
    ]
    assert bool(pickled.ties) is tied
    assert ties(pickled).verdict == "consistent"
    (tmp_path / "pickled/config.json").unlink()
    assert count(tmp_path / "pickled").total == parameters(model)
    assert bool(count(tmp_path / "pickled").ties) is tied  # told by the memory alone


@FORMS
def test_shards_and_their_index_are_one_checkpoint(tmp_path: Path, zipped: bool):
    model = small_model("llama", num_hidden_layers=3)
    model.config.save_pretrained(tmp_path)
    state = model.state_dict()
    placed = {name: f"pytorch_model-{1 + number % 2:05}-of-00002.bin" for number, name in enumerate(state)}
    for shard in set(placed.values()):
        save(tmp_path / shard, {name: one for name, one in state.items() if placed[name] == shard}, zipped=zipped)
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": placed}))
    assert count(tmp_path).total == count(index).total == parameters(model)
    assert count(tmp_path).mismatches == {}

    index.write_text(json.dumps({"weight_map": {**placed, "more": next(iter(placed.values()))}}))
    assert "puts 'more' in 'pytorch_model-00001-of-00002.bin', which does not hold it" in refusal(tmp_path)
    index.write_text(json.dumps({"weight_map": {**placed, "more": "../secret.bin"}}))
    assert "puts 'more' in the string '../secret.bin', which is not a file name in its own folder" in refusal(tmp_path)
    index.write_text(json.dumps({"weight_map": {**placed, "more": "absent.bin"}}))
    assert "'absent.bin'" in refusal(index)


@FORMS
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_that_torch_can_save(tmp_path: Path, name: str, zipped: bool):
    dtype = getattr(torch, name)
    values = {
        "scalar": torch.zeros((), dtype=dtype),
        "matrix": torch.zeros(2, 3, dtype=dtype),
        "none": torch.zeros(0, 4, dtype=dtype),
    }
    path = save(tmp_path / "a.pt", values, zipped=zipped)
    assert told(path) == {"scalar": ((), name, 1), "matrix": ((2, 3), name, 6), "none": ((0, 4), name, 0)}
    assert count(path).totals["stored_bytes"] == 7 * values["scalar"].element_size()


@FORMS
def test_memory_that_several_tensors_see_is_counted_once(tmp_path: Path, zipped: bool):
    whole = torch.arange(60.0).reshape(6, 10)
    values = {
        "whole": whole, "again": whole, "turned": whole.t(), "rows": whole[1:3], "apart": torch.zeros(2, 2),
        "one": torch.zeros(1).expand(5, 5),
    }  # fmt: skip
    ledger = count(save(tmp_path / "a.pt", values, zipped=zipped))
    assert ledger.total == 60 + 4 + 1
    assert {name: ledger.tensors[name].storage for name in values} == {
        **dict.fromkeys(("whole", "again", "turned", "rows"), "whole"), "apart": "apart", "one": "one"
    }  # fmt: skip
    assert [tie.relation for tie in ledger.ties] == ["aliased"]
    fused = torch.zeros(4, 30)
    parts = {"q": fused[:, :10], "k": fused[:, 10:20], "v": fused[:, 20:]}
    ledger = count(save(tmp_path / "b.pt", parts, zipped=zipped))
    assert ledger.total == 120
    assert ledger.ties == ()
    crossing = {"a": fused[:, :20], "b": fused[:, 10:]}
    assert [one[2] for one in told(save(tmp_path / "c.pt", crossing, zipped=zipped)).values()] == [80, 40]


@FORMS
def test_values_are_compared_where_they_lie_in_one_piece(tmp_path: Path, zipped: bool):
    weight = torch.randn(20, 8)
    model = {"wte.weight": weight, "lm_head.weight": weight.clone()}
    assert [group.relation for group in ties(save(tmp_path / "a.pt", model, zipped=zipped)).groups] == ["copied"]
    model["lm_head.weight"][3, 3] += 1
    assert [group.relation for group in ties(save(tmp_path / "a.pt", model, zipped=zipped)).groups] == ["untied"]
    write_config(tmp_path, TINY)
    body = {name: torch.randn(shape) for name, shape in TINY_SHAPES.items()}
    save(tmp_path / "a.pt", {**body, **model}, zipped=zipped)
    assert ties(tmp_path).groups[0].relation == "untied"
    across = {**body, **model, "lm_head.weight": torch.randn(8, 20).t()}
    save(tmp_path / "a.pt", across, zipped=zipped)
    group = ties(tmp_path).groups[0]
    assert (group.relation, group.why) == ("unknown", "lm_head.weight is not stored contiguously")


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt_s_checkpoint_is_counted_by_its_own_arguments(tmp_path: Path, bias: bool, compiled: bool):
    model = small("gpt2")
    write_nanogpt(tmp_path / "ckpt.pt", model, bias=bias, compiled=compiled)
    ledger = count(tmp_path / "ckpt.pt")
    biases = sum(one.numel() for name, one in model.named_parameters() if name.endswith(".bias"))
    assert ledger.total == parameters(model) - (0 if bias else biases)
    assert ledger.architecture == "nanogpt"
    assert ledger.mismatches == {}
    assert ledger.totals["buffers"] == 64  # its causal mask
    assert [len(tie.names) for tie in ledger.ties] == [2]
    assert noted(ledger, "counted the tensors under 'model', not the other entries: 'model_args', 'optimizer'")
    assert count(tmp_path).total == ledger.total  # the folder of a run


@pytest.mark.parametrize(
    ("wrap", "key"),
    [
        (lambda state: {"state_dict": state, "epoch": 3, "callbacks": {}}, "state_dict"),
        (lambda state: {"model": state, "optimizer": {"state": {0: {"exp_avg": torch.zeros(9)}}}}, "model"),
        (lambda state: {"model_state_dict": state, "optimizer_state_dict": {"m": torch.zeros(9)}}, "model_state_dict"),
        (lambda state: {"module": state, "ds_version": "1"}, "module"),
        (lambda state: {"mine": state, "args": [1]}, "mine"),
        (lambda state: state, None),
        (OrderedDict, None),
    ],
)
def test_the_state_dict_is_found_in_what_a_run_saved(tmp_path: Path, wrap: Any, key: str | None):
    state = {"wte.weight": torch.zeros(5, 4), "h.0.w": torch.zeros(4)}
    ledger = count(save(tmp_path / "a.ckpt", wrap(state)))
    assert ledger.by("tensor") == {"wte.weight": 20, "h.0.w": 4}
    assert noted(ledger, f"counted the tensors under '{key}'") is (key is not None)


def test_dictionaries_inside_are_opened(tmp_path: Path):
    nested = {
        "model": {"language_model": {"embedding": {"weight": torch.zeros(3, 2)}, "extra": 1}, "b": torch.zeros(2)}
    }
    ledger = count(save(tmp_path / "a.pt", nested))
    assert ledger.by("tensor") == {"language_model.embedding.weight": 6, "b": 2}
    assert noted(ledger, "1 values among the tensors are not tensors")


def test_packed_parameters_are_tensors_too(tmp_path: Path):
    """As dynamic quantisation has them: weight and bias in a tuple."""
    state = {
        f"{name}._packed": (torch.quantize_per_tensor(torch.zeros(4, 3), 0.1, 0, torch.qint8), torch.zeros(4), None)
        for name in ("fc", "proj", "out")
    }
    ledger = count(save(tmp_path / "a.pt", state))
    assert ledger.by("tensor") == {
        f"{name}._packed.{part}": size for name in ("fc", "proj", "out") for part, size in ((0, 12), (1, 4))
    }
    assert noted(ledger, "3 values among the tensors are not tensors")


# -- what is no checkpoint ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "holds no state dict"),
        ([1, 2], "holds no tensors"),
        ({"a": 1}, "holds no tensors"),
        ({"a.b": torch.zeros(1), "a": {"b": torch.zeros(1)}}, "two tensors named 'a.b'"),
        (nn.ReLU(), "holds no tensors"),
    ],
)
@FORMS
def test_what_holds_no_model_is_refused(tmp_path: Path, value: Any, message: str, zipped: bool):
    assert message in refusal(save(tmp_path / "a.pt", value, zipped=zipped))


def test_a_dictionary_at_two_places_is_counted_at_both(tmp_path: Path):
    inner = {"w": torch.zeros(3)}
    ledger = count(save(tmp_path / "a.pt", {"model": {"x": inner, "y": inner}}))
    assert (ledger.total, [tie.names for tie in ledger.ties]) == (3, [("x.w", "y.w")])


def test_dictionaries_at_very_many_places_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budget, "SECONDS", 0.5)
    inner: dict[str, Any] = {"w": torch.zeros(1)}
    for _ in range(25):
        inner = {"a": inner, "b": inner}
    assert "reading it takes more than" in refusal(save(tmp_path / "a.pt", inner))


def test_a_dictionary_inside_itself_is_refused(tmp_path: Path):
    inner = {"w": torch.zeros(1)}
    inner["again"] = inner
    assert "inside itself" in refusal(save(tmp_path / "a.pt", {"model": inner}))


class Trap:
    def __reduce__(self) -> Any:
        return os.system, ("touch sprung",)


@FORMS
def test_what_it_would_run_is_named_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool):
    monkeypatch.chdir(tmp_path)
    for value in (Trap(), {"w": Trap()}, {"model": {"w": torch.zeros(1)}, "args": Trap()}):
        line = refusal(save(tmp_path / "a.bin", value, zipped=zipped))
        assert "names GLOBAL posix.system, which weights never need: nothing was run" in line
    (tmp_path / "a.bin").write_bytes(pickle.dumps(Trap(), 2))
    assert "GLOBAL posix.system" in refusal(tmp_path / "a.bin")
    assert not (tmp_path / "sprung").exists()


def test_a_program_of_torchscript_is_told(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        for name in ("m/data.pkl", "m/constants.pkl", "m/version"):
            archive.writestr(name, b"")
    assert "it is a TorchScript program" in refusal(tmp_path / "a.pt")


# -- storages that are not there ------------------------------------------------------------------

STATE = {"wte.weight": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}


def rewritten(path: Path, *, change: dict[str, bytes | None], method: int = zipfile.ZIP_STORED) -> Path:
    """A file of torch.save packed anew, with members changed or left out."""
    save(path, STATE)
    with zipfile.ZipFile(path) as archive:
        members = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in {**members, **change}.items():
            if content is not None:
                archive.writestr(f"a/{name}", content)
    return path


def test_a_storage_that_is_absent_or_short_is_refused(tmp_path: Path):
    path = tmp_path / "a.pt"
    assert "it does not hold the storage '0', for which its pickle needs 24 bytes" in refusal(
        rewritten(path, change={"data/0": None})
    )
    assert "it holds 23 bytes of the storage '0'" in refusal(rewritten(path, change={"data/0": bytes(23)}))
    assert refusal(rewritten(path, change={"data/0": bytes(24)})) == ""


def test_an_archive_that_is_packed_is_counted(tmp_path: Path):
    path = rewritten(tmp_path / "a.pt", change={}, method=zipfile.ZIP_DEFLATED)
    assert count(path).total == 8
    assert "data.pkl' uses compression method 12" in refusal(rewritten(path, change={}, method=zipfile.ZIP_BZIP2))


def test_a_pickle_that_is_not_that_of_its_checksum_is_refused(tmp_path: Path):
    path = save(tmp_path / "a.pt", STATE)
    path.write_bytes(path.read_bytes().replace(b"wte.weight", b"wtf.weight"))
    assert "data.pkl' is damaged: wrong size or checksum" in refusal(path)


def test_a_tensor_beyond_its_storage_is_refused(tmp_path: Path):
    save(tmp_path / "a.pt", STATE)
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        pickled = archive.read("a/data.pkl")
    wider = pickled.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86")
    assert wider != pickled
    line = refusal(rewritten(tmp_path / "a.pt", change={"data.pkl": wider}))
    assert "a tensor of shape (2, 4) that needs 7 elements of a storage with 6" in line


# -- archives made to harm ------------------------------------------------------------------------


def test_a_pickle_that_swells_is_refused(tmp_path: Path):
    swollen = b"\x80\x02" + b"N0" * (20 << 20) + b"."
    path = rewritten(tmp_path / "a.pt", change={"data.pkl": swollen}, method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    assert "more than the 16,777,216 that are read" in refusal(path)
    assert memory_of(path) < 5_000_000
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"a/data.pkl"))
    struct.pack_into("<I", content, at + 24, 100)  # what it claims to swell to
    path.write_bytes(content)
    assert "data.pkl' is damaged" in refusal(path)
    assert memory_of(path) < 5_000_000


@pytest.mark.parametrize("name", ["../a/data/0", "/etc/data/0", "a\\data\\0", "c:/data/0", "a/../../data/0"])
def test_members_whose_names_lead_out_are_refused(tmp_path: Path, name: str):
    save(tmp_path / "a.pt", STATE)
    with zipfile.ZipFile(tmp_path / "a.pt", "a") as archive:
        archive.writestr(name, b"")
    assert "a name that leads out of the archive" in refusal(tmp_path / "a.pt")


def test_members_that_overlap_are_refused(tmp_path: Path):
    path = rewritten(tmp_path / "a.pt", change={})
    content = bytearray(path.read_bytes())
    places = [at for at in range(len(content)) if content.startswith(b"PK\x01\x02", at)]
    header = struct.unpack_from("<I", content, places[0] + 42)[0]
    struct.pack_into("<I", content, places[1] + 42, header + 1)
    path.write_bytes(content)
    assert "overlaps the one before it" in refusal(path)


def test_an_archive_that_claims_millions_of_members_costs_nothing(tmp_path: Path):
    path = tmp_path / "a.pt"
    with path.open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFE, 0xFFFE, 900 << 20, 100, 0))
    assert "its directory of 65,534 members would take more than" in refusal(path)
    assert memory_of(path) < 1_000_000


@FORMS
def test_a_file_cut_off_at_any_byte_is_refused(tmp_path: Path, zipped: bool):
    path = save(tmp_path / "a.pt", {"w": torch.zeros(2)}, zipped=zipped)
    refused_at_every_byte(path, path.read_bytes())


@FORMS
@pytest.mark.parametrize("value", ["a tie", "nanogpt"])
def test_a_changed_file_is_counted_or_refused(tmp_path: Path, zipped: bool, value: str):
    weight = torch.zeros(4, 3)
    state = {"transformer.wte.weight": weight, "lm_head.weight": weight, "transformer.h.0.ln_1.weight": weight[0]}
    arguments = {"n_layer": 1, "n_embd": 3, "n_head": 1, "block_size": 2, "vocab_size": 4, "bias": False}
    whole = state if value == "a tie" else {"model": state, "model_args": arguments, "iter_num": 5}
    path = save(tmp_path / "a.pt", whole, zipped=zipped)
    assert survives(path, mutations(path.read_bytes(), most=300))


def test_a_changed_pickle_in_a_sound_archive_is_counted_or_refused(tmp_path: Path):
    """Most changes to an archive break its checksum: these are changes to what is followed."""
    save(tmp_path / "a.pt", STATE)
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    refused = 0
    for changed in mutations(members["a/data.pkl"], most=500):
        write_archive(tmp_path / "a.pt", {**members, "a/data.pkl": changed})
        refused += bool(refusal(tmp_path / "a.pt"))
    assert refused


def write_archive(path: Path, members: dict[str, bytes], *, wide: bool = False) -> None:
    """A plain archive, faster than the standard library's; `wide` writes sizes and places as those
    above 4 GB are.
    """
    body, directory = b"", b""
    for name, content in members.items():
        word, checksum, size = name.encode(), zlib.crc32(content), len(content)
        extra = struct.pack("<2H3Q", 1, 24, size, size, len(body)) if wide else b""
        told, place = (0xFFFFFFFF, 0xFFFFFFFF) if wide else (size, len(body))
        fields = (20, 20, 0, 0, 0, 0, checksum, told, told, len(word), len(extra), 0, 0, 0, 0, place)
        directory += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *fields) + word + extra
        body += (
            struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 0, checksum, size, size, len(word), 0) + word + content
        )
    start, count = len(body), len(members)
    end = b""
    if wide:
        end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 20, 20, 0, 0, count, count, len(directory), start)
        end += struct.pack("<4sIQI", b"PK\x06\x07", 0, start + len(directory), 1)
        start, count = 0xFFFFFFFF, 0xFFFF
    end += struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, 0xFFFFFFFF if wide else len(directory), start, 0)
    path.write_bytes(body + directory + end)


def test_sizes_and_places_of_64_bits_are_read(tmp_path: Path):
    save(tmp_path / "a.pt", STATE)
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    before = told(tmp_path / "a.pt")
    write_archive(tmp_path / "a.pt", members, wide=True)
    assert zipfile.ZipFile(tmp_path / "a.pt").testzip() is None
    assert told(tmp_path / "a.pt") == before


def test_a_storage_whose_class_is_a_string(tmp_path: Path):
    """The pickle may name anything where torch has the class of a storage."""
    torch.save({"a": torch.zeros(2)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as archive, zipfile.ZipFile(tmp_path / "b.pt", "w") as changed:
        for member in archive.infolist():
            content = archive.read(member)
            if member.filename.endswith("data.pkl"):
                assert b"ctorch\nFloatStorage\n" in content
                content = content.replace(b"ctorch\nFloatStorage\n", b"X\x0c\0\0\0FloatStorage")
            changed.writestr(member.filename, content)
    with pytest.raises(BadInput, match="invalid storage id"):
        count(tmp_path / "b.pt")
