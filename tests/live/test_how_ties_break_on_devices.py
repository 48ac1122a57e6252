"""How ties break when a model is split over ranks and devices; test_how_ties_break.py lists every
row.
"""

import subprocess
import sys
import warnings

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

from broken_ties import HEAD, IDS, SIZE, TOTAL, WTE, followed, gpt2, head_replaced, logits, mended, named, step
from tallystick import BadInput, count, retie, ties, watch
from tallystick.live import TieLost
from tied_checkpoints import rewrite

pytestmark = pytest.mark.usefixtures("preloaded_module")


@pytest.fixture
def mesh(tmp_path):
    """A group of this process alone."""
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


def test_fsdp2_with_the_pair_in_two_units(mesh):
    def apart(model):
        for part in (model.transformer.wte, model.lm_head, model):
            fully_shard(part, mesh=mesh)

    model = gpt2()
    with pytest.raises(TieLost, match="were tied and are copied"), watch(model):
        apart(model)
    named(model, "copied-parameters", "copied")
    with pytest.raises(ValueError, match="shared with a parameter already managed by another FSDP group"):
        model(IDS)
    with pytest.raises(BadInput, match="tie the model first, then wrap it with all names of the tie in one unit"):
        retie(model)

    model = gpt2()
    expected = logits(model)
    with watch(model):
        fully_shard([model.transformer.wte, model.lm_head], mesh=mesh)
        fully_shard(model, mesh=mesh)
    assert ties(model).verdict == "consistent"
    torch.testing.assert_close(logits(model), expected)


def test_fsdp1_with_the_pair_in_two_units(mesh):
    """It trains on silently.

    With `use_orig_params=True` both units even show one Parameter object, and train a copy each:
    that is not seen yet.
    """

    def wrap(module):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that one process shards nothing
            return FullyShardedDataParallel(module, device_id=torch.device("cpu"))

    def losses(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        for _ in range(3):
            step(model, optimizer)
        return model(IDS, labels=IDS).loss.item()

    sound = losses(gpt2())
    model = gpt2()
    model.transformer.wte, model.lm_head = wrap(model.transformer.wte), wrap(model.lm_head)
    model = wrap(model)
    named(model, "copied-parameters", "copied")
    assert abs(losses(model) - sound) > 0.1
    named(model, "untied-head", "untied")
    with pytest.raises(BadInput, match="tie the model first, then wrap it with all names of the tie in one unit"):
        retie(model, keep=WTE)

    model = wrap(gpt2())
    assert ties(model).problems == ()
    assert losses(model) == pytest.approx(sound, rel=1e-5)


def emptied(model):
    """As ZeRO-3 leaves a model: a tensor without elements, and what it was beside it."""
    for number, parameter in enumerate(model.parameters()):
        parameter.ds_id, parameter.ds_shape, parameter.ds_numel = number, parameter.shape, parameter.numel()
        parameter.data = torch.empty(0)
    return model


def test_empty_parameters_of_zero_3_are_told_by_identity():
    model = emptied(gpt2())
    assert {parameter.data_ptr() for parameter in model.parameters()} == {0}
    assert sum(parameter.numel() for parameter in model.parameters()) == 0
    assert count(model).total == TOTAL
    assert (ties(model).verdict, ties(model).groups[0].relation) == ("consistent", "tied")

    model = gpt2()
    head_replaced(model)
    emptied(model)
    assert count(model).total == TOTAL + SIZE
    followed(named(model, "untied-head", "unknown"), model)
    assert (ties(model).verdict, count(model).total) == ("consistent", TOTAL)


TWO_STAGES = """
import sys
import torch
from torch import distributed, nn
from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline
import tallystick

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.middle, self.lm_head = nn.Embedding(7, 4), nn.Linear(4, 4), nn.Linear(4, 7, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        return self.lm_head(self.middle(self.wte(ids))).flatten(0, 1)

store, rank, reduced = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "reduced"
distributed.init_process_group("gloo", store=distributed.FileStore(store, 2), rank=rank, world_size=2)
torch.manual_seed(0)
ids = torch.tensor([[1, 2, 2], [3, 4, 5]])
pipe = pipeline(Model(), (ids[:1],), split_spec={"middle": SplitPoint.BEGINNING})
assert pipe.replicated_params == [{"submod_pp_0": "wte.weight", "submod_pp_1": "lm_head.weight"}]
stage = pipe.build_stage(rank, torch.device("cpu"))
mine = stage.submod.get_parameter(("wte.weight", "lm_head.weight")[rank])
schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.functional.cross_entropy)

pair = nn.ModuleDict({"wte": nn.Embedding(7, 4), "lm_head": nn.Linear(4, 7, bias=False)})
def gather():
    for owner, part in enumerate(pair.values()):
        if rank == owner:
            part.weight.data.copy_(mine.data)
        distributed.broadcast(part.weight.data, src=owner)

gather()
optimizer = torch.optim.SGD([mine], lr=1.0)
try:
    with tallystick.watch(pair):
        schedule.step(*([ids] if rank == 0 else []), target=(ids.roll(-1).flatten() if rank == 1 else None))
        if reduced:
            distributed.all_reduce(mine.grad)
        optimizer.step()
        gather()
except AssertionError as error:
    print(error)
distributed.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("how", "said"), [("alone", "wte.weight and lm_head.weight were copied and are untied"), ("reduced", "")]
)
def test_two_stages_of_a_pipeline_need_their_gradients_added(tmp_path, how, said):
    """Two copies on two ranks are the best that there is: they stay equal, or drift."""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", TWO_STAGES, str(tmp_path / "store"), str(rank), how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        done = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for out, error in done:
        assert out.startswith(said) if said else not out, error
    assert [rank.returncode for rank in ranks] == [0, 0], done


def test_a_device_map_puts_two_names_on_two_devices(tmp_path):
    from accelerate import infer_auto_device_map, init_empty_weights, load_checkpoint_and_dispatch

    folder = tmp_path / "in"
    gpt2().save_pretrained(folder)
    rewrite(folder, lambda tensors: tensors.update({HEAD: tensors[WTE].clone()}))

    def empty():
        with init_empty_weights():
            return gpt2()

    def dispatched(model):
        places = {"transformer": "cpu", "lm_head": "disk"}
        return load_checkpoint_and_dispatch(model, folder, device_map=places, offload_folder=tmp_path / "offload")

    room = {"cpu": 4 * TOTAL + 10, "disk": 1_000_000}
    model = empty()
    assert set(infer_auto_device_map(model, max_memory=room).values()) == {"cpu", "disk"}  # it counts the pair twice
    call = named(model, "aliased-parameters", "aliased")
    broken = dispatched(empty())
    assert {str(broken.get_parameter(name).device) for name in (WTE, HEAD)} == {"cpu", "meta"}
    named(broken, "untied-head", "unknown")

    mended(model, call)
    assert set(infer_auto_device_map(model, max_memory=room).values()) == {"cpu"}
    whole = dispatched(model)
    assert ties(whole).verdict == "consistent"
    assert torch.equal(logits(whole), logits(gpt2()))
