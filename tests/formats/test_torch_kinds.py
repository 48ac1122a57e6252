"""Tensors of torch that are no plain ones: counted as `torch.load(weights_only=True)` gives them
back.
"""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest
import torch

from checkpoint_models import noted
from tallystick import BadInput, count
from tallystick.formats.pickled.torch_tensors import new_parameter

PLAIN = torch.zeros(4, 6)
SPARSE = {
    "coo": torch.eye(4, 6).to_sparse(), "hybrid": torch.eye(4, 6).to_sparse(1), "csr": torch.eye(4, 6).to_sparse_csr(),
    "csc": torch.eye(4, 6).to_sparse_csc(), "bsr": torch.eye(4, 6).to_sparse_bsr((2, 2)), "bsc": torch.eye(4, 6).to_sparse_bsc((2, 2)),
}  # fmt: skip


def saved(path: Path, value: Any, **options: Any) -> Path:
    torch.save(value, path / "a.pt", **options)
    return path / "a.pt"


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("zipped", [True, False])
def test_a_sparse_tensor_is_counted_by_its_dense_shape(tmp_path: Path, kind: str, zipped: bool):
    path = saved(tmp_path, {"w": SPARSE[kind], "b": PLAIN}, _use_new_zipfile_serialization=zipped)
    given = torch.load(path, weights_only=True)["w"]
    ledger = count(path)
    held = [given._indices(), given._values()] if given.layout == torch.sparse_coo else [given.values()]
    if given.layout in (torch.sparse_csr, torch.sparse_bsr):
        held += [given.crow_indices(), given.col_indices()]
    elif given.layout != torch.sparse_coo:
        held += [given.ccol_indices(), given.row_indices()]
    assert ledger.tensors["w"].shape == tuple(given.shape)
    assert ledger.total == given.numel() + PLAIN.numel()
    assert ledger.totals["stored_bytes"] == sum(one.nbytes for one in held) + PLAIN.nbytes
    assert ledger.totals["buffers"] == sum(one.numel() for one in held if one.dtype == torch.int64)
    assert noted(ledger, "counted by their dense shapes, 24 elements")


def test_a_nested_tensor_is_counted_by_all_its_parts(tmp_path: Path):
    parts = [torch.zeros(2, 3), torch.zeros(4, 3)]
    for layout in (torch.strided, torch.jagged):
        ledger = count(saved(tmp_path, {"w": torch.nested.nested_tensor(parts, layout=layout)}))
        assert ledger.total == 18
        assert noted(ledger, "counted by the 18 elements of all parts")


def test_a_shard_is_counted_by_its_global_shape(tmp_path: Path):
    from torch import distributed
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    try:
        weight = distribute_tensor(torch.zeros(8, 4), init_device_mesh("cpu", (4,)), [Shard(0)])
        path = saved(tmp_path, {"w": weight, "again": weight, "p": torch.nn.Parameter(weight)})
        assert torch.load(path, weights_only=True)["w"].shape == (8, 4)
    finally:
        distributed.destroy_process_group()
    ledger = count(path)
    assert ledger.total == 32
    assert ledger.totals["stored_bytes"] == weight.to_local().nbytes == 32
    assert [tie.names for tie in ledger.ties] == [("w", "again", "p")]
    assert noted(ledger, "counted by their global shapes, 96 elements; 24 of this rank are stored")


class Without:
    """A shard as torch pickles it, without what it holds."""

    def __reduce__(self) -> Any:
        from torch.distributed.tensor import DTensor

        empty = (DTensor, torch.float32, (2, 3), (3, 1), 0, torch.strided, torch.device("cpu"), False)
        return torch._utils._rebuild_wrapper_subclass, empty


@pytest.mark.parametrize("name", ["w", "layer.w"])
def test_a_shard_without_values_is_refused(tmp_path: Path, name: str):
    path = saved(tmp_path, {"b": PLAIN, name: Without()})
    with pytest.raises(BadInput, match=f"it holds '{name}' of class DTensor, whose values are not at their offset"):
        count(path)


@pytest.mark.parametrize("word", ["float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"])
def test_dtypes_without_arithmetic(tmp_path: Path, word: str):
    tensor = torch.empty(2, 3, dtype=getattr(torch, word))
    ledger = count(saved(tmp_path, {"w": tensor}))
    assert (ledger.tensors["w"].dtype, ledger.total, ledger.totals["stored_bytes"]) == (word, 6, tensor.nbytes)
    assert noted(ledger, "each complex element") is (word == "float4_e2m1fn_x2")


@pytest.mark.parametrize("dtype", [torch.quint4x2, torch.quint2x4])
def test_elements_that_share_bytes(tmp_path: Path, dtype: torch.dtype):
    tensor = torch.quantize_per_channel(torch.zeros(3, 5), torch.ones(3), torch.zeros(3), 0, dtype)
    ledger = count(saved(tmp_path, {"w": tensor}))
    assert (ledger.total, ledger.totals["stored_bytes"]) == (15, tensor.untyped_storage().nbytes())


def test_views_that_show_an_element_twice_count_it_once(tmp_path: Path):
    row = torch.zeros(30)
    values = {"windows": row[:9].unfold(0, 4, 1), "steps": row[10:].as_strided((3, 3), (2, 3))}
    ledger = count(saved(tmp_path, values))
    assert {name: entry.unique for name, entry in ledger.tensors.items()} == {"windows": 9, "steps": 9}


def test_one_memory_under_two_dtypes_counts_once(tmp_path: Path):
    row = torch.zeros(8, dtype=torch.uint8)
    ledger = count(saved(tmp_path, {"a": row.view(torch.float8_e4m3fn), "b": row.view(torch.uint16)[:2], "c": row}))
    assert {name: entry.unique for name, entry in ledger.tensors.items()} == {"a": 8, "b": 0, "c": 0}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_values_beside_tensors_by_the_names_of_any_python(tmp_path: Path, protocol: int):
    beside = {
        "default": collections.defaultdict(int, a=1), "queue": collections.deque([1], 3), "frozen": frozenset([1]), "complex": 1j,
        "set": {1}, "bytes": b"a", "array": bytearray(b"a"), "kind": int, "range": range(3), "counter": collections.Counter("aab"),
    }  # fmt: skip
    ledger = count(saved(tmp_path, {"w": PLAIN, **beside}, pickle_protocol=protocol))
    assert ledger.total == PLAIN.numel()


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (PLAIN, ["tensor"]),
        ([PLAIN, {"w": PLAIN.clone()}], ["0", "1.w"]),
        ({"one": {"w": PLAIN}, "two": {"w": PLAIN.clone()}}, ["one.w", "two.w"]),
        ({0: PLAIN, (1, "a"): PLAIN.clone()}, ["0", "(1, 'a')"]),
        (collections.defaultdict(int, w=PLAIN), ["w"]),
        ({"all": collections.deque([PLAIN])}, ["all.0"]),
    ],
)
def test_tensors_wherever_they_are(tmp_path: Path, value: Any, names: list[str]):
    assert list(count(saved(tmp_path, value)).tensors) == names


def test_a_parameter_of_three_arguments_is_refused():
    """torch's takes a tensor and requires_grad."""
    with pytest.raises(BadInput, match="a wrong number of arguments"):
        new_parameter((torch.zeros(2), True, True))
