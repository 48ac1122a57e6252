"""The decoder's head and embedding are one Parameter, whatever is done to it, and its ledger says
so.
"""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch.nn import functional as F

import tallystick
from decoders import KINDS, VOCABULARY
from tallystick.live import survive
from tallystick.live.operations import OPERATIONS, copying, loading, moving
from tallystick.models import Decoder, families

TIED = {**KINDS["llama"], "model_type": "llama", "tie_word_embeddings": True}


@pytest.fixture
def decoder():
    torch.manual_seed(0)
    return Decoder.of(TIED)


def assert_one(decoder):
    assert decoder.head.weight is decoder.embedding.weight
    assert decoder.head.weight.data_ptr() == decoder.embedding.weight.data_ptr()
    assert torch.equal(decoder.head.weight, decoder.embedding.weight)


def test_it_is_one_from_the_start_and_drawn_as_the_embedding_is(decoder):
    assert_one(decoder)
    assert decoder.head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    torch.manual_seed(0)
    untied = Decoder.of(TIED, tie_word_embeddings=False)
    assert untied.head.weight is not untied.embedding.weight
    assert not torch.equal(untied.head.weight, untied.embedding.weight)


def test_made_on_the_meta_device_and_materialised_it_is_one():
    with torch.device("meta"):
        decoder = Decoder.of(TIED)
    assert decoder.head.weight is decoder.embedding.weight
    decoder = decoder.to_empty(device="cpu")
    decoder.reset_parameters()
    assert_one(decoder)
    assert torch.isfinite(decoder(torch.tensor([[1, 2, 3]]))).all()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda decoder: pickle.loads(pickle.dumps(decoder))])
def test_a_copy_is_one_of_its_own(decoder, copied):
    other = copied(decoder)
    assert_one(other)
    assert other.head.weight is not decoder.head.weight


@pytest.mark.parametrize("assign", [True, False])
def test_loaded_from_a_state_dict_it_is_one(decoder, assign):
    file = io.BytesIO()
    torch.save(decoder.state_dict(), file)
    file.seek(0)
    other = Decoder.of(TIED)
    other.load_state_dict(torch.load(file, weights_only=True), assign=assign)
    assert_one(other)
    assert torch.equal(other.head.weight, decoder.head.weight)


@pytest.mark.parametrize(
    "moved", [lambda d: d.to(torch.bfloat16), lambda d: d.double(), lambda d: d.half(), lambda d: d.cpu()]
)
def test_in_another_dtype_it_is_one(decoder, moved):
    assert_one(moved(decoder))


def test_with_parameters_swapped_and_not_overwritten_it_is_one(decoder):
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        assert_one(decoder.double())
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)


def test_of_all_ways_to_copy_load_and_move_it_only_those_that_take_it_apart_lose_the_tie():
    rooms = {room.__name__ for room in (copying, loading, moving)}
    tried = [operation for operation in OPERATIONS if operation.run.__module__ in rooms]
    rows = survive.survive("decoders:tied", operations=tried).rows
    assert len(rows) > 15
    assert {row.operation: row.outcome for row in rows if row.outcome != "kept"} == {
        "copy.deepcopy of the parts": "lost",
        "save_file(state)": "refused",
        "head = torch.nn.utils.skip_init(nn.Linear, ...)": "lost",
    }


@pytest.mark.parametrize("tied", [True, False])
def test_it_says_what_is_meant_to_be_one(tied):
    decoder = Decoder.of(TIED, tie_word_embeddings=tied)
    assert tallystick.ties(decoder).verdict == "consistent"
    decoder.head.weight = torch.nn.Parameter(decoder.embedding.weight.detach().clone())
    answer = tallystick.ties(decoder)
    assert answer.verdict == ("contradiction" if tied else "consistent")
    assert [group.names for group in answer.groups if group.expected] == (
        [("embedding.weight", "head.weight")] if tied else []
    )
    if tied:
        assert "no longer tied" in tallystick.count(decoder).notes[0]
        tallystick.retie(decoder)
        assert_one(decoder)
    else:
        assert not tallystick.count(decoder).notes


def test_its_gradient_is_the_sum_of_both_uses(decoder):
    twin = Decoder.of(TIED, tie_word_embeddings=False)
    twin.load_state_dict(decoder.state_dict())
    tokens = torch.randint(VOCABULARY, (2, 20))
    for model in (decoder, twin):
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    both = twin.embedding.weight.grad + twin.head.weight.grad
    assert twin.embedding.weight.grad.abs().sum() > 0
    torch.testing.assert_close(decoder.embedding.weight.grad, both)


@pytest.mark.parametrize("kind", sorted({*families.known()} & {*KINDS}))
@pytest.mark.parametrize("tied", [True, False])
def test_the_ledger_is_that_of_the_config(kind, tied):
    values = {**KINDS[kind], "model_type": kind, "tie_word_embeddings": tied}
    with torch.device("meta"):
        ledger = Decoder.of(values).ledger()
    wanted = tallystick.count(values)
    assert ledger.total == wanted.total
    assert ledger.by("role") == wanted.by("role")
    assert ledger.totals["active"] == wanted.totals["active"]
    assert ledger.architecture == kind
    assert [set(tie.names) for tie in ledger.ties] == ([{"embedding.weight", "head.weight"}] if tied else [])


def test_the_gpt2_seed_counts_its_head_once():
    with torch.device("meta"):
        ledger = Decoder.of("gpt2").ledger()
    assert ledger.total == 124_439_808
    assert ledger.totals["by_name"] == 163_037_184
