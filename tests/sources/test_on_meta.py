"""A factory is called on the meta device first, and its count is that of the model in memory,
whatever the factory does.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import tallystick
from tallystick.cli.main import main
from tallystick.sources.factory.factory import ON_META

IN_MEMORY = "cannot be built on the meta device"

FACTORIES = """
import copy, functools
import numpy as np
import torch
from torch import nn

CALLS = []


class LM(nn.Module):
    def __init__(self, vocab=64, width=16, layers=2):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.h = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, 32) for _ in range(layers))
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))
        self.register_buffer("table", torch.arange(8), persistent=False)


def plain():
    CALLS.append(LM().wte.weight.device.type)
    return LM()

def tied():
    model = LM()
    model.wte.weight = model.lm_head.weight
    return model

def aliased():
    model = LM()
    model.lm_head.weight = nn.Parameter(model.wte.weight.data)
    return model

def detached():
    model = LM()
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach())
    return model

def part():
    model = LM()
    model.extra = nn.Parameter(model.wte.weight.data[8:24])
    model.row = nn.Parameter(model.wte.weight.data.view(-1)[:40])
    return model

def transposed():
    model = LM()
    model.extra = nn.Parameter(model.wte.weight.data.t())
    return model

def disjoint():
    flat = torch.zeros(100)
    return nn.ParameterList([nn.Parameter(flat[:40]), nn.Parameter(flat[40:])])

def copied():
    return copy.deepcopy(tied())

def halved():
    return tied().half()

def doubled():
    return tied().to(torch.float64)

def buffers():
    model = LM()
    model.register_buffer("ids", torch.zeros(5, dtype=torch.int64))
    model.register_buffer("bits", torch.ones(3, dtype=torch.bool))
    model.register_buffer("brief", torch.ones(3, 2).bfloat16())
    model.register_buffer("again", model.mask)
    return model

def normed():
    model = tied()
    nn.utils.parametrizations.weight_norm(model.lm_head)
    return model

def of_torch():
    return nn.ModuleDict({"lstm": nn.LSTM(8, 16, 2, bidirectional=True), "mha": nn.MultiheadAttention(8, 2, kdim=4, vdim=6)})

def loaded():
    model = tied()
    model.load_state_dict(tied().state_dict())
    return model

def grown():
    model = tied()
    model.wte = nn.Embedding(72, 16)
    model.wte.weight.data[:64] = model.lm_head.weight.data
    return model

def lazy():
    return nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 4))

def frozen():
    model = tied()
    model.h.requires_grad_(False)
    return model


# what must be built in memory

def by_value():
    rates = [x.item() for x in torch.linspace(0, 1, 3)]
    return nn.Linear(4, 1 + int(sum(rates) * 10))

def moved():
    return tied().to("cpu")

def emptied():
    return tied().to_empty(device="cpu")

def by_address():
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    seen = {p.data_ptr(): p for m in (one, two) for p in m.parameters()}
    return nn.ParameterList(seen.values())

def of_numpy():
    model = LM()
    model.wte.weight = nn.Parameter(torch.from_numpy(model.lm_head.weight.detach().numpy()))
    return model

def given():
    return nn.ParameterList([nn.Parameter(torch.from_numpy(np.zeros((3, 4), dtype=np.float32)))])

def hushed():
    try:
        width = int(torch.tensor(7))
    except Exception:
        width = 1
    return nn.Linear(width, width)

def of_base():
    flat = torch.zeros(20)
    model = nn.Module()
    model.register_buffer("a", flat[:12])
    model.register_buffer("b", flat[4:])
    return copy.deepcopy(model)

def stepped():
    mask = torch.rand(9) < 2
    return nn.Linear(int(mask.sum()), len(torch.nonzero(mask)))

def packed():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear})

@functools.cache
def _angles(width):
    return torch.arange(width).float()

def kept():
    model = LM()
    model.register_buffer("angles", _angles(8).to("cpu"))
    return model

ready = tied()
"""

EVERYWHERE = [
    "plain",
    "tied",
    "aliased",
    "detached",
    "part",
    "transposed",
    "disjoint",
    "copied",
    "halved",
    "doubled",
    "buffers",
    "normed",
    "of_torch",
    "loaded",
    "grown",
    "lazy",
    "frozen",
]
MEMORY_ALONE = [
    "by_value",
    "moved",
    "emptied",
    "by_address",
    "of_numpy",
    "given",
    "hushed",
    "of_base",
    "stepped",
    "packed",
    "kept",
]


@pytest.fixture
def factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "some_factories.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "some_factories", raising=False)
    return "some_factories"


def facts(ledger: tallystick.Ledger) -> dict[str, object]:
    notes = [note for note in ledger.notes if note != ON_META and not note.startswith(IN_MEMORY)]
    return {**ledger.to_dict(by="tensor"), "notes": notes, "entries": ledger.entries}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", EVERYWHERE + MEMORY_ALONE)
def test_the_count_is_that_of_the_model_in_memory(factories: str, name: str):
    on_meta = tallystick.count(f"{factories}:{name}")
    really = tallystick.count(f"{factories}:{name}", real=True)
    assert facts(on_meta) == facts(really)
    assert (ON_META in on_meta.notes) == (name in EVERYWHERE)
    assert any(note.startswith(IN_MEMORY) for note in on_meta.notes) == (name in MEMORY_ALONE)
    assert not any("meta" in note for note in really.notes)


@pytest.mark.parametrize(("name", "relation"), [("tied", "tied"), ("aliased", "aliased"), ("detached", "aliased")])
def test_what_is_shared_is_seen_on_the_meta_device(factories: str, name: str, relation: str):
    ledger = tallystick.count(f"{factories}:{name}")
    assert ON_META in ledger.notes
    assert [(tie.names, tie.relation) for tie in ledger.ties] == [(("wte.weight", "lm_head.weight"), relation)]


def test_values_are_built_when_they_are_asked_for(factories: str):
    (Path("some_factories.py")).write_text(
        FACTORIES
        + textwrap.dedent("""
        def equal():
            CALLS.append(torch.empty(0).device.type)
            model = LM()
            model.lm_head.weight = nn.Parameter(model.wte.weight.clone())
            return model
    """)
    )
    ledger = tallystick.count(f"{factories}:equal")
    calls = __import__(factories).CALLS
    assert calls == ["meta"]
    assert [group.relation for group in tallystick.ties(ledger).groups] == ["copied"]
    assert calls == ["meta", "cpu"]
    assert [group.relation for group in tallystick.ties(f"{factories}:equal").groups] == ["copied"]
    assert calls == ["meta", "cpu", "cpu"]


def test_a_module_that_is_there_already_is_counted_as_it_is(factories: str):
    assert tallystick.count(f"{factories}:ready").notes == tallystick.count(f"{factories}:tied", real=True).notes


def test_a_model_larger_than_any_memory_is_counted(factories: str, capsys: pytest.CaptureFixture[str]):
    code = main(
        ["count", f"{factories}:LM", "--set", "vocab=1000000000", "width=100000", "layers=0", "--format", "json"]
    )
    assert code == 0
    assert f'"unique": {2 * 10**14}' in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["count", "{}"],
        ["formula", "{}"],
        ["compare", "{}", "{}"],
        ["reconcile", "{}", "1M"],
        ["memory", "{}"],
        ["compute", "{}"],
        ["fit", "{}", "--device", "24GB"],
    ],
)
@pytest.mark.parametrize("real", [True, False])
def test_each_command_builds_on_the_meta_device_unless_told_otherwise(
    factories: str, capsys: pytest.CaptureFixture[str], words: list[str], real: bool
):
    code = main([*(word.format(f"{factories}:plain") for word in words), *(["--real"] if real else [])])
    assert code in (0, 1), capsys.readouterr().err
    assert set(__import__(factories).CALLS) == {"cpu" if real else "meta"}


@pytest.mark.parametrize(
    "word", ["some_factories", "some_factories.py", "./some_factories.py", "some_factories.py:plain"]
)
@pytest.mark.parametrize("command", ["count", "ties", "survive", "memory"])
def test_a_module_without_its_factory_is_told_what_to_write(
    factories: str, capsys: pytest.CaptureFixture[str], command: str, word: str
):
    assert main([command, word]) == 2
    error = capsys.readouterr().err
    assert "is a module of Python: write package.module:factory, such as some_factories:" in error
    assert "for a function that returns an nn.Module, or for a config's dictionary" in error
    assert error.count("\n") == 1


def test_a_folder_of_modules_is_written_with_dots(factories: str):
    (Path("pkg")).mkdir()
    (Path("pkg") / "model.py").write_text("")
    with pytest.raises(tallystick.BadInput, match=r"such as pkg\.model:build, for a function that returns"):
        tallystick.count("pkg/model.py")
    with pytest.raises(tallystick.BadInput, match=r"there is no file 'nowhere\.py': write package\.module:factory"):
        tallystick.count("nowhere.py")
    assert not torch.empty(0).is_meta


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        ("normal_(weight)", ""),
        ("normal_(weight, std=-1.0)", "normal expects std >= 0.0"),
        ("kaiming_uniform_(weight)", ""),
        ("kaiming_uniform_(weight[0])", "fewer than 2 dimensions"),
        ("kaiming_uniform_(weight, mode='fan')", "fan"),
        ("normal_(weight.int())", "(?i)int"),
    ],
)
def test_what_gives_values_fails_where_it_fails_in_memory(factories: str, call: str, refused: str):
    """No values are drawn on the meta device, but a wrong call is an error there too."""
    Path("wrong_values.py").write_text(
        "from torch import nn\n\n"
        "def build(d=4):\n"
        "    module = nn.Linear(d, d)\n"
        "    weight = module.weight.detach()\n"
        f"    nn.init.{call}\n"
        "    return module\n"
    )
    sys.modules.pop("wrong_values", None)
    importlib.invalidate_caches()
    if not refused:
        assert tallystick.count("wrong_values:build").total == 20
        assert tallystick.formula("wrong_values:build", vary={"d": (2, 9)}).expression == "d**2 + d"
        return
    for asked in (
        lambda: tallystick.count("wrong_values:build"),
        lambda: tallystick.count("wrong_values:build", real=True),
        lambda: tallystick.formula("wrong_values:build", vary={"d": (2, 9)}),
    ):
        with pytest.raises(tallystick.BadInput, match=refused):
            asked()
