"""Files of torch.save that name classes of their users: nothing of these runs, and the tensors are
counted.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import functools
import os
import pickle
import subprocess
import sys
import types
import typing
import uuid
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tallystick
from hostile import refusal
from tallystick import count
from tallystick.core.budget import one_source
from tallystick.formats.pickled.pickles import followed
from torch_forms import FORMS, save
from weights import small

pytestmark = pytest.mark.usefixtures("preloaded_module")

GPT = {"block_size": 16, "vocab_size": 65, "n_layer": 2, "n_head": 2, "n_embd": 8}


class Foreign:
    """A module of somebody's, that is gone once the file is written."""

    def __init__(self, name: str = "theirs") -> None:
        self.module = types.ModuleType(name)
        self.module.__dict__.update(dataclass=dataclass, nn=nn, torch=torch)
        self.name = name

    def __enter__(self) -> types.ModuleType:
        sys.modules[self.name] = self.module
        return self.module

    def __exit__(self, *_: object) -> None:
        del sys.modules[self.name]

    def run(self, code: str) -> types.ModuleType:
        exec(code, self.module.__dict__)  # the tests' own text
        return self.module


CONFIG = """
@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 65
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 8
"""


def gpt2_like(prefix: str = "") -> dict[str, torch.Tensor]:
    """A decoder as the lecture writes it, tied, by the formula of its config."""
    d, rows, positions = GPT["n_embd"], GPT["vocab_size"], GPT["block_size"]
    shapes = {"transformer.wte.weight": (rows, d), "transformer.wpe.weight": (positions, d)}
    for layer in range(GPT["n_layer"]):
        for name, shape in {
            "ln_1": (d,), "attn.c_attn": (3 * d, d), "attn.c_proj": (d, d), "ln_2": (d,),
            "mlp.c_fc": (4 * d, d), "mlp.c_proj": (d, 4 * d),
        }.items():  # fmt: skip
            shapes[f"transformer.h.{layer}.{name}.weight"] = shape
            shapes[f"transformer.h.{layer}.{name}.bias"] = shape[:1]
    shapes |= {"transformer.ln_f.weight": (d,), "transformer.ln_f.bias": (d,)}
    state = {prefix + name: torch.zeros(shape) for name, shape in shapes.items()}
    return {**state, f"{prefix}lm_head.weight": state[f"{prefix}transformer.wte.weight"]}


def elements(state: dict[str, torch.Tensor]) -> int:
    return sum(tensor.numel() for tensor in {id(tensor): tensor for tensor in state.values()}.values())


# -- configs --------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
def test_a_dataclass_beside_the_model_is_its_config(tmp_path: Path, prefix: str, zipped: bool):
    foreign = Foreign("theirs")
    with foreign:
        made = foreign.run(CONFIG).GPTConfig()
        path = save(tmp_path / "a.pt", {"model": gpt2_like(prefix), "config": made, "step": 7}, zipped=zipped)
    ledger = count(path)
    assert ledger.total == elements(gpt2_like()) == ledger.described.total
    assert not any(ledger.mismatches.values())
    assert any("names theirs.GPTConfig: nothing of that was imported or run" in note for note in ledger.notes)


def test_a_script_names_its_classes_by_main(tmp_path: Path):
    code = f"import torch\nfrom dataclasses import dataclass\n{CONFIG}\n"
    code += "torch.save({'model': {'w': torch.zeros(3, 4)}, 'config': GPTConfig(), 'step': 1}, 'a.pt')\n"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    ledger = count(tmp_path / "a.pt")
    assert (ledger.total, ledger.described) == (12, None)
    assert any("names __main__.GPTConfig" in note for note in ledger.notes)


@FORMS
def test_a_config_alone_is_said_to_be_one(tmp_path: Path, zipped: bool):
    foreign = Foreign()
    with foreign:
        save(tmp_path / "a.pt", foreign.run(CONFIG).GPTConfig(), zipped=zipped)
    assert "it holds one object of theirs.GPTConfig" in refusal(tmp_path / "a.pt")


def test_fields_of_another_model_describe_none(tmp_path: Path):
    foreign = Foreign()
    with foreign:
        made = foreign.run(CONFIG).GPTConfig()
        save(tmp_path / "a.pt", {"model": {"blocks.0.w": torch.zeros(3, 4)}, "config": made})
    ledger = count(tmp_path / "a.pt")
    assert (ledger.total, ledger.described) == (12, None)


KINDS = {
    "frozen": "@dataclass(frozen=True)\nclass Made:\n    n: int = 3\n",
    "slots": "@dataclass(slots=True)\nclass Made:\n    n: int = 3\n",
    "a dictionary": "class Made(dict):\n    pass\n",
    "a list": "class Made(list):\n    pass\n",
    "an ordered dictionary": "import collections\nclass Made(collections.OrderedDict):\n    pass\n",
    "an enum": "import enum\nclass Kind(enum.Enum):\n    A = 1\nMade = lambda: Kind.A\n",
    "a state of its own": "class Made:\n    def __getstate__(self):\n        return (1, 2)\n    def __setstate__(self, s):\n        pass\n",
    "a reduction": "class Made:\n    def __reduce__(self):\n        return Made, (), {'n': 1}\n",
    "a tuple by names": "import collections\nMade = collections.namedtuple('Made', 'a', defaults=[1])\nMade.__module__ = 'theirs'\n",
}


@FORMS
@pytest.mark.parametrize("kind", KINDS)
def test_objects_of_every_kind_of_class_stand_beside_the_tensors(tmp_path: Path, kind: str, zipped: bool):
    foreign = Foreign()
    with foreign:
        made = foreign.run(KINDS[kind]).Made()
        if kind in ("a dictionary", "an ordered dictionary"):
            made["n"] = 3
        if kind == "a list":
            made.append(3)
        save(tmp_path / "a.pt", {"model": {"w": torch.zeros(3, 4)}, "config": made, "args": [made]}, zipped=zipped)
    assert count(tmp_path / "a.pt").total == 12


@pytest.mark.parametrize(
    "made",
    [
        types.SimpleNamespace(a=1),
        argparse.Namespace(a=1),
        functools.partial(dict, a=1),
        typing.Any,
        decimal.Decimal(1),
        datetime.date(2026, 1, 1),
        datetime.UTC,
        uuid.UUID(int=1),
        fractions.Fraction(1, 2),
        collections.ChainMap({}),
    ],
)
def test_plain_holders_of_values_stand_beside_the_tensors(tmp_path: Path, made: Any):
    assert count(save(tmp_path / "a.pt", {"model": {"w": torch.zeros(3, 4)}, "args": made})).total == 12


def test_a_state_dict_of_a_class_of_its_own_is_one(tmp_path: Path):
    foreign = Foreign()
    with foreign:
        state = foreign.run("class State(dict):\n    pass\n").State(w=torch.zeros(3, 4))
        save(tmp_path / "a.pt", {"model": state, "step": 1})
        save(tmp_path / "b.pt", state)
    assert count(tmp_path / "a.pt").total == count(tmp_path / "b.pt").total == 12


# -- whole modules --------------------------------------------------------------------------------


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(11, 6)
        layer = nn.TransformerEncoderLayer(6, 2, 8)
        self.h = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("mask", torch.ones(4, 4))
        self.register_buffer("passing", torch.ones(5, 5), persistent=False)
        self.lm_head = nn.Linear(6, 11, bias=False)
        self.lm_head.weight = self.wte.weight


@FORMS
@pytest.mark.parametrize("holder", [None, "model", "ema"])
def test_a_whole_module_is_counted_as_its_state_dict(tmp_path: Path, holder: str | None, zipped: bool):
    model = Decoder()
    whole = save(tmp_path / "whole.pt", {holder: model, "epoch": 3} if holder else model, zipped=zipped)
    ledger = count(whole)
    parameters = {name: parameter.numel() for name, parameter in model.named_parameters(remove_duplicate=False)}
    assert ledger.total == sum(p.numel() for p in model.parameters())
    assert {e.name for e in ledger.entries if not e.buffer} == parameters.keys()
    assert {e.name for e in ledger.entries} == model.state_dict().keys()
    assert ledger.totals["buffers"] == sum(b.numel() for b in model.buffers()) - 25
    assert [set(tie.names) for tie in ledger.ties] == [{"wte.weight", "lm_head.weight"}]


@FORMS
def test_a_small_one_of_transformers_is_too(tmp_path: Path, zipped: bool):
    model = small("gpt2")
    assert count(save(tmp_path / "a.pt", model, zipped=zipped)).total == sum(p.numel() for p in model.parameters())


def test_modules_inside_themselves_and_many_at_once_are_refused(tmp_path: Path):
    ring = nn.Module()
    ring.weight = nn.Parameter(torch.zeros(2))
    ring._modules["again"] = ring
    assert "modules one inside the other" in refusal(save(tmp_path / "a.pt", ring))
    deep = nn.Linear(1, 1)
    for _ in range(40):
        deep = nn.ModuleDict({"a": deep})
    assert "modules one inside the other" in refusal(save(tmp_path / "a.pt", deep))
    many = nn.Linear(1, 1)
    for _ in range(26):
        many = nn.ModuleDict({"a": many, "b": many})
    assert "more than" in refusal(save(tmp_path / "a.pt", many))


# -- what stays refused ---------------------------------------------------------------------------


class Call:
    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


@FORMS
@pytest.mark.parametrize(
    "call",
    [
        (os.system, "touch sprung"), (eval, "open('sprung', 'w')"), (subprocess.Popen, "touch sprung"), (torch.load, "a"),
        (pickle.loads, b"."), (functools.reduce, max, [1]), (torch.hub.load, "a", "b"),
        (torch.load, 1), (__import__, "os"), (collections.namedtuple, "a", "b"),
    ],
)  # fmt: skip
def test_what_runs_things_is_refused_wherever_it_stands(tmp_path: Path, monkeypatch, call: Any, zipped: bool):
    monkeypatch.chdir(tmp_path)
    foreign = Foreign()
    with foreign:
        made = foreign.run(CONFIG).GPTConfig()
        made.trap = Call(*call)
        save(tmp_path / "a.pt", {"model": {"w": torch.zeros(1)}, "config": made}, zipped=zipped)
    line = refusal(tmp_path / "a.pt")
    assert "nothing of it was run" in line
    assert not (tmp_path / "sprung").exists()


def test_a_function_of_anybody_is_named_but_never_called(tmp_path: Path):
    foreign = Foreign()
    with foreign:
        theirs = foreign.run("def act(x):\n    open('sprung', 'w')\nact.__module__ = 'theirs'\n")
        save(tmp_path / "a.pt", {"model": {"w": torch.zeros(2)}, "act": theirs.act})
        save(tmp_path / "b.pt", {"model": {"w": torch.zeros(2)}, "act": Call(theirs.act, 1)})
    assert count(tmp_path / "a.pt").total == 2
    assert "calls GLOBAL theirs.act, which is no class: nothing of it was run" in refusal(tmp_path / "b.pt")


def test_nothing_is_imported_for_a_name(tmp_path: Path, monkeypatch):
    (tmp_path / "trapped.py").write_text("open('sprung', 'w')\nclass Config:\n    pass\n")
    foreign = Foreign("trapped")
    with foreign:
        made = foreign.run("class Config:\n    pass\n").Config()
        save(tmp_path / "a.pt", {"model": {"w": torch.zeros(2)}, "config": made})
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert count("a.pt").total == 2
    assert "trapped" not in sys.modules
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "name", [b"__main__\nA.__init__.__globals__", b"a\x1b[2J\nB", b"a b\nC", b"\nD", b"x\n", b"..\nE"]
)
def test_names_that_are_none_are_refused(tmp_path: Path, name: bytes):
    content = BytesIO(b"\x80\x02c" + name + b"\n)\x81.")
    with one_source(), pytest.raises(tallystick.BadInput, match="nothing of it was run"):
        followed(content, {}, lambda _: None, {})
