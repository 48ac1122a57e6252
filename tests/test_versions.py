"""Older torch and transformers: what is too old is said in a line before anything fails, and what
is missing is done otherwise.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import torch
import transformers
from torch.distributed.checkpoint import HuggingFaceStorageReader, load
from torch.nn import functional as F

import matrix
import on_versions
from decoders import KINDS, ours, theirs
from repository import ROOT
from rotating import one_by_commit
from tallystick import BadInput, versions
from tallystick.models.layers import mlp
from tallystick.sources.transformers_meta import build as building
from tallystick.training import optimizers
from tallystick.training.run import prepared
from training import small

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MT5 = {"model_type": "mt5", "num_layers": 1, "vocab_size": 10, "d_model": 8, "d_ff": 8, "num_heads": 2, "d_kv": 4}


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize("name", on_versions.CHECKS)
def test_what_must_work_with_every_pair_works_with_this_one(tmp_path, name):
    on_versions.CHECKS[name](tmp_path)


# -- what is too old ------------------------------------------------------------------------------


def test_the_oldest_versions_are_those_that_the_extras_ask_for():
    asked = {found for extra in PROJECT["optional-dependencies"].values() for found in extra}
    for package, oldest in versions.OLDEST.items():
        assert {one for one in asked if re.match(rf"{package}\b", one)} == {f"{package}>={oldest}"}
        assert any(getattr(pair, package).startswith(f"{oldest}.") for pair in matrix.PAIRS)


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("2.4.1", True), ("2.5.1+cu121", True), ("1.13.0", True), ("2", True), ("2.6.0.dev20250101", False), ("2.6", False),
        ("2.6.0a0+git1", False), ("2.13.0+cpu", False), ("2.10", False), ("3", False), ("main", False), (None, False),
    ],
)  # fmt: skip
def test_a_release_is_older_by_its_numbers(monkeypatch, version, old):
    monkeypatch.setattr(versions, "installed", lambda package: version)
    assert versions.is_too_old("torch") is old


def run_with(folder, package, version, *words):
    """What the command says where a package of that version is installed: its metadata lies before
    the real one's.
    """
    metadata = folder / f"{package}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from tallystick.cli.main import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], check=False, capture_output=True, text=True, cwd=folder)


RUN_MODELS = ["generate here --prompt a", "evaluate here a.txt", "train"]


@pytest.mark.parametrize("words", RUN_MODELS)
def test_a_torch_that_is_too_old_to_run_models_is_said_in_a_line(tmp_path, words, request):
    if words not in one_by_commit(RUN_MODELS):  # which imports torch itself
        request.getfixturevalue("preloaded")
    (tmp_path / "a.txt").write_text("a text")
    done = run_with(tmp_path, "torch", "2.4.1", *words.split())
    line = "tallystick: tallystick needs torch 2.6 or newer to run models; this is 2.4.1: pip install -U 'torch>=2.6'\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize(
    ("package", "version", "oldest"), [("torch", "2.5.1", "2.6"), ("transformers", "4.44.2", "4.57")]
)
def test_a_package_that_is_too_old_to_build_is_said_in_a_line(tmp_path, package, version, oldest):
    (tmp_path / "mt5.json").write_text('{"model_type": "mt5"}')
    done = run_with(tmp_path, package, version, "count", "mt5.json")
    assert done.returncode == 2
    assert done.stderr == (
        f"tallystick: tallystick needs {package} {oldest} or newer to build 'mt5', which it does not know natively;"
        f" this is {version}: pip install -U '{package}>={oldest}'\n"
    )


def test_what_needs_neither_runs_whatever_their_versions(tmp_path):
    done = run_with(tmp_path, "torch", "1.0", "count", "gpt2")
    assert (done.returncode, done.stderr) == (0, "")


def test_muon_is_refused_before_the_run_where_torch_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(optimizers, "MUON", None)
    with pytest.raises(
        BadInput, match=r"optimizer = 'muon' needs torch 2\.9 or newer; this is .*: pip install -U 'torch>=2\.9'"
    ):
        prepared(small(tmp_path, optimizer="muon"))
    assert not (tmp_path / "run" / "data").exists()


# -- what older ones lack -------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [0, 1, 14])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_of_one_expert_after_another_are_those_of_all_at_once(dtype, tokens):
    """An expert without tokens among them; values and gradients beside `grouped_mm`'s."""
    torch.manual_seed(0)
    ends = torch.tensor([min(tokens, end) for end in (0, 5, 5, 14)], dtype=torch.int32)
    found = []
    rows, stack = torch.randn(tokens, 16, dtype=dtype), torch.randn(4, 16, 24, dtype=dtype)
    upstream = torch.randn(tokens, 24, dtype=dtype)
    for product in (mlp.one_by_one, F.grouped_mm):
        inputs = [one.clone().requires_grad_() for one in (rows, stack)]
        said = product(*inputs, offs=ends)
        if tokens:  # the backward pass of `grouped_mm` takes no empty rows
            said.backward(upstream)
        found.append((said.detach(), *[one.grad for one in inputs if tokens]))
    torch.testing.assert_close(*found)


def test_a_mixture_of_experts_without_grouped_products_says_what_transformers_says(monkeypatch):
    monkeypatch.delattr(F, "grouped_mm")
    monkeypatch.setattr(mlp.Experts, "_each", None)
    model = theirs("mixtral", **KINDS["mixtral"])
    decoder, tokens = ours(model), torch.arange(14).view(2, 7)
    expected, said = model(tokens).logits, decoder(tokens)
    torch.testing.assert_close(said, expected, atol=1e-5, rtol=1e-5)
    expected.sum().backward()
    said.sum().backward()
    theirs_grad, mine = model.get_input_embeddings().weight.grad, decoder.embedding.weight.grad
    torch.testing.assert_close(mine, theirs_grad, atol=1e-4, rtol=1e-4)


def test_classes_are_found_off_the_meta_device(monkeypatch):
    """What PyTorch before 2.9 computes as its compiler is imported, fails on that device."""
    seen, family = [], building._family

    def looked(config):
        seen.append(torch.empty(0).device.type)
        return family(config)

    monkeypatch.setattr(building, "_family", looked)
    build({})
    assert seen == ["cpu"]


def test_ties_that_transformers_leaves_out_on_the_meta_device_are_made(monkeypatch):
    """As 5.0.0 does; 5.23 calls `tie_weights` there too."""
    before = transformers.PreTrainedModel.init_weights
    model = transformers.MT5ForConditionalGeneration(transformers.MT5Config(**MT5))
    total = sum(parameter.numel() for parameter in model.parameters())

    def untied(self):
        if torch.empty(0).device.type != "meta":
            before(self)

    monkeypatch.setattr(transformers.PreTrainedModel, "init_weights", untied)
    facts = build({})["facts"]
    assert building_total(facts) == total


def build(overrides):
    """What transformers builds of a small MT5, in this process."""
    return building.build(
        source="mt5",
        model_type="mt5",
        values=MT5,
        overrides=overrides,
        classes=[],
        stored={},
        language=False,
        most=10**6,
    )


def building_total(facts):
    from tallystick.sources.torch_module.facts import ModuleFacts
    from tallystick.sources.torch_module.module import ledger_of_facts

    return ledger_of_facts(ModuleFacts.from_json(facts)).total


def test_what_torch_writes_and_runs_is_imported_before_the_seal(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.distributed.nn", raising=False)
    building.bring()
    assert "torch.distributed.nn" in sys.modules


def test_a_state_is_laid_out_as_torch_lays_out_its_own(tmp_path):
    """`HuggingFaceStorageReader` of torch 2.9 and newer reads what is written without it."""
    run = prepared(small(tmp_path, steps=2, save_every=2))
    list(run.events())
    run.close()
    expected = {f"model.{name}": parameter.detach() for name, parameter in run.decoder.named_parameters()}
    found = {name: torch.full_like(tensor, torch.nan) for name, tensor in expected.items()}
    load(
        found,
        storage_reader=HuggingFaceStorageReader(str(tmp_path / "run" / "checkpoints" / "step-00000002" / "state")),
    )
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
