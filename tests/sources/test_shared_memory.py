"""Memory that several tensors of a live module share, however they came to: its bytes are counted
once.
"""

import numpy as np
import pytest
import torch
from torch import nn

from tallystick import assert_tied, count, ties
from tallystick.answers.memory.model_states import buffers
from tallystick.live import NotTied, TieLost, retie, watch


class Holder(nn.Module):
    def __init__(self, **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            whole = isinstance(tensor, nn.Parameter)
            setattr(self, name, tensor if whole else nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))


def relations(ledger):
    return [(tie.names, tie.relation, tie.parameters) for tie in ledger.ties]


def seen(*tensors):
    """The addresses of all bytes that tensors see: the truth, element by element."""
    return {
        one.data_ptr() + byte
        for tensor in tensors
        for one in tensor.reshape(-1, 1).unbind()
        for byte in range(tensor.element_size())
    } if all(tensor.is_contiguous() for tensor in tensors) else {
        tensor.data_ptr() + (index @ torch.tensor(tensor.stride())).item() * tensor.element_size() + byte
        for tensor in tensors
        for index in torch.cartesian_prod(*(torch.arange(size) for size in tensor.shape)).view(-1, tensor.dim())
        for byte in range(tensor.element_size())
    }  # fmt: skip


def array(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


FLAT = torch.arange(40.0)
GRID = torch.arange(48.0).view(6, 8)
ARRAY = array(6, 4)
CASES = {
    "one array twice": (torch.from_numpy(ARRAY), torch.from_numpy(ARRAY)),
    "a part of an array": (torch.from_numpy(ARRAY), torch.from_numpy(ARRAY[2:])),
    "the part first": (torch.from_numpy(ARRAY[2:]), torch.from_numpy(ARRAY)),
    "two parts that cross": (torch.from_numpy(ARRAY[:4]), torch.from_numpy(ARRAY[2:])),
    "two parts that do not": (torch.from_numpy(ARRAY[:3]), torch.from_numpy(ARRAY[3:])),
    "columns of an array": (torch.from_numpy(ARRAY[:, :2]), torch.from_numpy(ARRAY[:, 1:])),
    "bytes": (FLAT, FLAT.view(torch.int8)),
    "bytes first": (FLAT.view(torch.uint8)[4:20], FLAT),
    "halves": (FLAT.view(torch.bfloat16)[10:], FLAT.view(torch.int32)[:10]),
    "windows": (FLAT.unfold(0, 8, 4),),
    "windows that do not join": (GRID.as_strided((3, 4, 2), (7, 5, 1)),),
    "windows and what they are in": (FLAT.unfold(0, 8, 4), FLAT[5:]),
    "two rows of windows": (FLAT.as_strided((4, 6), (3, 1)), FLAT.as_strided((4, 6), (3, 1), 9)),
    "a bridge": (FLAT[:10], FLAT[20:], FLAT[5:25]),
    "a bridge of another dtype": (torch.from_numpy(ARRAY[:2]), torch.from_numpy(ARRAY[4:]), torch.from_numpy(ARRAY).view(torch.int16)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_byte_is_counted_once(case):
    tensors = CASES[case]
    ledger = count(Holder(**{f"t{number}": tensor for number, tensor in enumerate(tensors)}))
    assert ledger.totals["bytes"] == len(seen(*tensors))
    assert bool(ledger.ties) == (len(seen(*tensors)) < sum(len(seen(tensor)) for tensor in tensors))


def test_the_bytes_of_a_view_on_the_meta_device():
    weight = torch.empty(6, 4, device="meta")
    ledger = count(Holder(a=weight, b=weight.view(torch.int8)))
    assert (ledger.total, ledger.totals["bytes"]) == (24, 96)


def test_two_arrays_of_one_address_after_another_are_two():
    model = nn.ParameterList(nn.Parameter(torch.from_numpy(array(3, 2))) for _ in range(50))
    assert (count(model).total, count(model).ties) == (300, ())


def test_a_pair_on_one_array_is_aliased_and_tied_again():
    weight = array(7, 3)
    model = nn.ModuleDict({"wte": nn.Embedding(7, 3), "lm_head": nn.Linear(3, 7, bias=False)})
    model["wte"].weight = nn.Parameter(torch.from_numpy(weight))
    model["lm_head"].weight = nn.Parameter(torch.from_numpy(weight))
    assert (ties(model).verdict, ties(model).groups[0].relation) == ("contradiction", "aliased")
    with pytest.raises(NotTied, match="aliased"):
        assert_tied(model)
    retie(model)
    assert ties(model).verdict == "consistent"
    with pytest.raises(TieLost, match="were tied and are aliased"), watch(model):
        model["lm_head"].weight = nn.Parameter(torch.from_numpy(weight))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_tied_pair_stays_tied_where_a_third_name_is_an_alias(place):
    weight = nn.Parameter(torch.randn(7, 3))
    model = nn.Sequential()
    names = ["wte", "lm_head"]
    names.insert(place, "shadow")
    for name in names:
        model.add_module(name, nn.Linear(3, 7, bias=False))
        model.get_submodule(name).weight = nn.Parameter(weight.data) if name == "shadow" else weight
    ledger = count(model)
    found = {tie.relation: set(tie.names) for tie in ledger.ties}
    assert found["tied"] == {"wte.weight", "lm_head.weight"}
    assert "shadow.weight" in found["aliased"]
    assert (ledger.total, sum(tie.parameters for tie in ledger.ties)) == (21, 42)
    assert ("wte.weight", "lm_head.weight") in [group.names for group in ties(model).groups if group.relation == "tied"]


def test_a_buffer_on_the_memory_of_a_parameter_takes_none():
    model = nn.Module()
    model.register_buffer("bytes", None)
    model.weight = nn.Parameter(torch.randn(6, 4))
    model.bytes = model.weight.data.view(torch.int8)
    model.register_buffer("mask", torch.ones(5))
    ledger = count(model)
    assert (ledger.total, ledger.totals["bytes"]) == (24, 96)
    assert {entry.name: entry.unique for entry in ledger.entries if entry.buffer} == {"bytes": 0, "mask": 5}
    assert [line.bytes for line in buffers(ledger, None)] == [20]
