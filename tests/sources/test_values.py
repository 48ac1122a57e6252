"""Tensors whose values are sharded, quantised, elsewhere or not there yet: what is told, and why
the rest is not.
"""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tallystick
from tallystick.answers.ties.ties import Group, Problem, Ties
from tallystick.core.entries import Entry
from tallystick.core.evidence import Compared, Evidence, worst
from tallystick.core.ledger import Ledger
from tallystick.live import NotTied, assert_tied, retie, watch
from tallystick.report.tables.table import console
from tallystick.report.ties import show_ties

pytestmark = pytest.mark.usefixtures("preloaded_module")

NAMES = ("wte.weight", "lm_head.weight")


class Model(nn.Module):
    """An embedding and a head of 7 × 3."""

    def __init__(self, embedding=None, head=None):
        super().__init__()
        self.wte = nn.Embedding(7, 3)
        self.lm_head = nn.Linear(3, 7, bias=False)
        if embedding is not None:
            self.wte.weight = parameter(embedding)
            self.lm_head.weight = self.wte.weight if head is None else parameter(head)


def parameter(tensor):
    return nn.Parameter(tensor, requires_grad=tensor.is_floating_point())


def told(model):
    """The one relation, and why it is not known."""
    (group,) = tallystick.ties(model).groups
    assert group.names == NAMES
    return group.relation, group.why


def values(*, change=0):
    tensor = torch.arange(21.0).view(7, 3)
    tensor[-1, -1] += change
    return tensor


# -- several pairs together -----------------------------------------------------------------------


def test_a_pair_that_is_not_known_takes_back_that_all_are_equal_and_not_that_some_differ():
    unknown = Compared("unknown", "no values")
    assert worst([Compared("copied"), unknown, Compared("tied")]) == unknown
    assert worst([unknown, Compared("untied")]).relation == "untied"
    assert worst([Compared("tied"), Compared("aliased")]).relation == "aliased"


def test_names_that_a_file_leaves_out_are_no_copies(tmp_path):
    """Of four names that are one, two are stored and equal: one copy too many, whatever else was
    left out.
    """
    from safetensors.torch import save_file

    from tallystick.formats.safetensors import read_header
    from tallystick.sources.checkpoint.values import StoredValues

    names = ("shared.weight", "encoder.weight", "decoder.weight", "lm_head.weight")
    path = tmp_path / "model.safetensors"
    save_file({names[0]: values(), names[3]: values()}, path)
    entries = [Entry(name, (7, 3), "other", "float32", names[0], 21 if name == names[0] else 0) for name in names]
    ledger = Ledger(
        entries,
        source="x",
        kind="safetensors",
        evidence=Evidence(
            declared=[names],
            relations={names[0]: "unknown"},
            values=StoredValues([(path, read_header(path))]),
        ),
    )
    answer = tallystick.ties(ledger)
    (group,) = answer.groups
    assert (group.relation, group.parameters, group.wasted_bytes, group.why) == ("copied", 21, 21 * 4, None)
    assert answer.problems[0].message.startswith("lm_head.weight is stored in addition to the equal shared.weight,")

    save_file({"other": values()}, path)  # and where none of them is stored, nothing is known
    ledger = replace(ledger, evidence=replace(ledger.evidence, values=StoredValues([(path, read_header(path))])))
    answer = tallystick.ties(ledger)
    assert (answer.groups[0].relation, answer.problems, answer.verdict) == ("unknown", (), "unknown")


# -- transposes and views -------------------------------------------------------------------------


def test_a_transposed_copy_is_a_copy_for_every_question():
    model = Model(values(), values().t().clone())
    assert told(model) == ("copied", None)
    with pytest.raises(NotTied, match=r"are copied \(equal values in separate memory\)"):
        assert_tied(model, *NAMES)
    model.lm_head.weight = nn.Parameter(values(change=1).t().clone())
    assert told(model) == ("untied", None)


def test_a_transposed_view_is_aliased():
    model = Model(values())
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach().t())
    assert told(model) == ("aliased", None)
    assert tallystick.count(model).total == 21


def test_tensors_of_three_dimensions_turned_round_are_not_each_others_transpose():
    model = nn.ParameterDict({"a": torch.ones(2, 3, 4), "b": torch.ones(4, 3, 2)})
    with pytest.raises(NotTied, match="are untied"):
        assert_tied(model, "a", "b")


# -- no values ------------------------------------------------------------------------------------


def empty(number, shape):
    """What DeepSpeed ZeRO-3 leaves on a rank: no element, and the real shape beside it."""
    tensor = nn.Parameter(torch.empty(0))
    tensor.ds_id, tensor.ds_shape, tensor.ds_numel = number, torch.Size(shape), 21
    return tensor


def test_pieces_of_zero_3_are_counted_whole_and_told_apart_by_their_number():
    model = Model()
    model.wte.weight, model.lm_head.weight = empty(0, (7, 3)), empty(1, (7, 3))
    assert model.wte.weight.data_ptr() == model.lm_head.weight.data_ptr() == 0
    assert told(model) == ("unknown", "DeepSpeed ZeRO-3 shards the values: gather them first")
    assert tallystick.count(model).total == 42
    with pytest.raises(NotTied, match=r"ZeRO-3 .* 21 more parameters; .* keep="):
        assert_tied(model)

    model.lm_head.weight = empty(0, (7, 3))  # another object of the same number is the same Parameter
    assert told(model) == ("tied", None)
    assert tallystick.count(model).totals["parameters"] == 21
    assert_tied(model)
    assert retie(model) == []


def test_numbers_of_zero_3_are_not_taken_for_objects():
    model = Model()
    model.lm_head.weight = empty(id(model.wte.weight), (7, 3))
    assert told(model)[0] == "unknown"


def test_on_the_meta_device_there_is_nothing_to_compare():
    assert told(Model().to("meta")) == ("unknown", "the meta device holds no values")
    half = Model()
    half.lm_head.to("meta")
    assert told(half) == ("unknown", "the meta device holds no values")


def test_a_lazy_head_is_not_tied_and_cannot_be_yet():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=4, n_layer=1, n_head=1, n_positions=8))
    model.lm_head = nn.LazyLinear(7, bias=False)
    answer = tallystick.ties(model)
    (group,) = answer.groups
    assert group.why == "a lazy parameter has neither shape nor values before the first forward pass"
    assert (group.relation, answer.verdict) == ("unknown", "contradiction")
    assert [problem.code for problem in answer.problems] == ["untied-head"]
    with pytest.raises(NotTied, match="run the model once"):
        assert_tied(model)
    with pytest.raises(tallystick.BadInput, match=r"lm_head\.weight is lazy and has no shape yet: run the model once"):
        retie(model)
    model(torch.tensor([[1, 2]]))
    retie(model, keep="transformer.wte.weight")
    assert model.lm_head.weight is model.transformer.wte.weight


def test_memory_that_was_given_back_is_not_read():
    """Sharding frees the whole tensor between uses; torch would read beyond the end, and the
    process would die.
    """
    model = Model(values(), values())
    model.lm_head.weight.untyped_storage().resize_(0)
    assert told(model) == ("unknown", "the values are freed for now, as sharding does between uses")
    model.lm_head.weight.untyped_storage().resize_(20 * 4)  # one element short
    assert told(model)[0] == "unknown"


def test_tensors_that_only_pretend():
    with FakeTensorMode():
        model = Model(torch.ones(7, 3), torch.ones(7, 3))
    relation, why = told(model)
    assert relation == "unknown"
    assert why.startswith("torch cannot compare")


def test_empty_and_sparse_tensors():
    model = nn.ParameterDict({"a": torch.empty(0, 3), "b": torch.empty(0, 3)})
    with pytest.raises(NotTied, match="this process holds none of their elements"):
        assert_tied(model, "a", "b")
    model = nn.ParameterDict({"a": torch.eye(3).to_sparse(), "b": torch.eye(3).to_sparse()})
    with pytest.raises(NotTied, match="cannot compare a sparse_coo tensor with a sparse_coo tensor"):
        assert_tied(model, "a", "b")


def test_a_model_that_nobody_else_holds_is_kept_until_its_values_were_read(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "built_here.py").write_text(
        "import torch\n"
        "def build(change):\n"
        "    model = torch.nn.ModuleDict({'wte': torch.nn.Embedding(7, 3), 'lm_head': torch.nn.Linear(3, 7, bias=False)})\n"
        "    model.lm_head.weight = torch.nn.Parameter(model.wte.weight.detach() + change)\n"
        "    return model\n"
    )
    for change, relation in ((0, "copied"), (1, "untied")):
        (group,) = tallystick.ties("built_here:build", change=change).groups
        assert (group.relation, group.why) == (relation, None)


# -- quantised ------------------------------------------------------------------------------------


def quantised(tensor):
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    linear = nn.Linear(3, 7, bias=False)
    linear.weight = nn.Parameter(tensor)
    quantize_(linear, Int8WeightOnlyConfig())
    return linear.weight.detach()


def test_quantised_tensors_are_compared_by_all_their_parts():
    assert told(Model(quantised(values()), quantised(values()))) == ("copied", None)
    # Twice the values has the same integers: only the scales differ.
    assert told(Model(quantised(values()), quantised(2 * values()))) == ("untied", None)


def test_a_quantised_tensor_beside_a_plain_one_is_not_known():
    model = Model(values(), quantised(values()))
    why = "torch cannot compare a plain tensor with a Int8Tensor"
    assert told(model) == ("unknown", why)
    model.lm_head.weight = nn.Parameter(quantised(values()), requires_grad=False)
    model.wte.weight.requires_grad_(False)
    with pytest.raises(tallystick.BadInput, match=rf"are equal \({why}\): choose one to keep: keep="):
        retie(model)
    retie(model, keep="wte.weight")
    assert_tied(model)


def test_two_parameters_on_the_parts_of_one_quantised_tensor_are_aliased():
    shared = quantised(values())
    names, context = shared.__tensor_flatten__()
    parts = {name: getattr(shared, name) for name in names}
    model = Model(shared, type(shared).__tensor_unflatten__(parts, context, shared.shape, shared.stride()))
    assert told(model) == ("aliased", None)
    assert tallystick.count(model).total == 21


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_torchs_own_quantised_tensors_are_compared_with_their_scales():
    """A view of their bits ends the process."""

    def buffers(scale):
        model = nn.Module()
        model.wte, model.lm_head = nn.Module(), nn.Module()
        for module, size in ((model.wte, 0.1), (model.lm_head, scale)):
            integers = torch.quantize_per_tensor(size * values(), size, 0, torch.qint8)
            module.weight = nn.Parameter(integers, requires_grad=False)
        return model

    for scale, relation in ((0.1, "copied"), (0.2, "untied")):
        with pytest.raises(NotTied, match=f"are {relation} "):
            assert_tied(buffers(scale), *NAMES)


def test_packed_bytes_whose_scales_are_elsewhere_are_not_compared():
    class Params4bit(nn.Parameter):
        """As bitsandbytes has it: packed bytes, and the scales as an attribute."""

    packed = torch.zeros(7, 3, dtype=torch.uint8)
    model = Model()
    for module in (model.wte, model.lm_head):
        module.weight = Params4bit(packed.clone(), requires_grad=False)
    assert told(model) == ("unknown", "a Params4bit holds packed values without their scales")


# -- sharded --------------------------------------------------------------------------------------


@pytest.fixture
def mesh(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/init", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


def test_sharded_tensors_on_one_process(mesh):
    tied = Model(values())
    copied, untied = Model(values(), values()), Model(values(), values(change=1))
    for model in (tied, copied, untied):
        fully_shard(model, mesh=mesh)
        assert isinstance(model.wte.weight, DTensor)
    assert [told(model) for model in (tied, copied, untied)] == [("tied", None), ("copied", None), ("untied", None)]
    assert [tallystick.count(model).total for model in (tied, copied, untied)] == [21, 42, 42]
    with pytest.raises(tallystick.BadInput, match="FSDPModule has already registered the parameters"):
        retie(copied)


def test_two_parameters_on_one_shard_are_aliased(mesh):
    model = Model()
    model.wte.weight = nn.Parameter(distribute_tensor(values(), mesh, [Shard(0)]))
    model.lm_head.weight = nn.Parameter(DTensor.from_local(model.wte.weight.to_local().detach(), mesh, [Shard(0)]))
    assert told(model) == ("aliased", None)
    assert tallystick.count(model).total == 21


def test_tensor_parallel_wrapping_loses_the_tie_and_says_nothing(mesh):
    model = Model(values())
    plan = {"wte": RowwiseParallel(input_layouts=Replicate()), "lm_head": ColwiseParallel()}
    with pytest.raises(AssertionError, match="were tied and are copied"), watch(model):
        parallelize_module(model, mesh, plan)
    assert told(model) == ("copied", None)
    half = parallelize_module(Model(values()), mesh, {"wte": plan["wte"]})
    assert told(half) == ("unknown", "torch cannot compare a DTensor of Shard(dim=0) with a plain tensor")


def two_processes(rank, path):
    """What each of two processes sees; run as a script. The second asks nothing that the first
    would wait for.
    """
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}/init", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))

    def sharded(embedding, head, placement, its=None):
        parts = [distribute_tensor(embedding, mesh, [placement]), distribute_tensor(head, mesh, [its or placement])]
        return Model(*parts)

    tied, copied = Model(values()), Model(values(), values())
    for model in (tied, copied):
        fully_shard(model, mesh=mesh)
    models = {
        "tied": tied,
        "copied": copied,
        "last element": sharded(values(), values(change=1), Shard(0)),
        "replicated": sharded(values(), values(), Replicate()),
        "placements": sharded(values(), values(), Shard(0), Replicate()),
    }
    if rank == 0:  # alone: a collective call would wait for the other process for ever
        models["alone"] = models["copied"]
    told_here = {what: told(model) for what, model in models.items()}
    told_here["counts"] = [tallystick.count(tied).total, tallystick.count(copied).total]
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return told_here


def test_each_of_two_processes_compares_its_own_shards_and_waits_for_nobody(tmp_path):
    code = "import json, sys, test_values; print(json.dumps(test_values.two_processes(int(sys.argv[1]), sys.argv[2])))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parent
        )
        for rank in range(2)
    ]
    try:
        first, second = (json.loads(process.communicate(timeout=120)[0].splitlines()[-1]) for process in running)
    finally:
        for process in running:
            process.kill()
    shards = "only the shards of this process were compared"
    assert first == {
        "tied": ["tied", None],
        "copied": ["copied", shards],
        "last element": ["copied", shards],  # the second process holds it
        "replicated": ["copied", None],
        "placements": ["unknown", "torch cannot compare a DTensor of Shard(dim=0) with a DTensor of Replicate()"],
        "alone": ["copied", shards],
        "counts": [21, 42],
    }
    assert second["last element"] == ["untied", None]
    assert {key: first[key] for key in second if key != "last element"} == {
        key: second[key] for key in second if key != "last element"
    }


def test_the_report_says_why_once():
    unknown = Group(("a", "b"), "unknown", None, 4, 0, "the meta device holds no values")
    known = Group(("c", "d"), "tied", True, 4, 0)
    out = io.StringIO()
    show_ties(Ties("x", "module", (unknown, known), "unknown", ()), console(out))
    assert out.getvalue().count("unknown, a and b: the meta device holds no values") == 1
    problem = Problem("untied-head", ("a", "b"), "b left a: the meta device holds no values", "tie them")
    out = io.StringIO()
    show_ties(Ties("x", "module", (unknown, known), "contradiction", (problem,)), console(out))
    assert out.getvalue().count("the meta device holds no values") == 1
