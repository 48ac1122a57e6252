"""Checkpoints beside the model that transformers would load them into: every causal type, nested
flags, names of all ages.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import tallystick
from rotating import some_by_commit
from small import CAUSAL, FLAG, IMPOSSIBLE, small_model
from tallystick.cli.main import main

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def saved(folder: Path, model_type: str, **settings: Any) -> Path:
    """What transformers saves of a small model."""
    small_model(model_type, **settings).save_pretrained(folder)
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """The tensors of a saved folder, changed."""
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})


def configure(folder: Path, **settings: Any) -> None:
    """Keys of a saved config set, or left out where they are None; those of a part are merged into
    it.
    """
    path = folder / "config.json"
    values = json.loads(path.read_text())
    for key, value in settings.items():
        values[key] = {**values[key], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))


def shared(model: torch.nn.Module) -> Counter[int]:
    """How many names each shared Parameter has."""
    names = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    return Counter(count for count in names.values() if count > 1)


def said(answer: Any) -> Counter[int]:
    return Counter(len(group.names) for group in answer.groups if group.relation == "tied")


def codes(source: Path) -> list[str]:
    return [problem.code for problem in tallystick.ties(source).problems]


# -- every type -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", some_by_commit([kind for kind in CAUSAL if kind not in IMPOSSIBLE], 60))
def test_what_transformers_saves_is_consistent_until_its_flag_is_turned(tmp_path: Path, model_type: str):
    """A folder of each type, tied and not: no alarm. Each beside the other's config: what is lost
    is named.
    """
    ties, texts = {}, {}
    for tied in (True, False):
        model = small_model(model_type, tied=tied)
        model.save_pretrained(tmp_path / str(tied))
        texts[tied] = (tmp_path / str(tied) / "config.json").read_text()
        ties[tied] = shared(model)
        answer = tallystick.ties(tmp_path / str(tied))
        assert (answer.verdict, answer.problems, answer.notes) == ("consistent", (), ())
        assert said(answer) == ties[tied]
    turned = {True: {"config-says-untied-head-missing"}, False: {"config-says-tied-file-differs"}}
    for tied, wrong in turned.items():
        (tmp_path / str(tied) / "config.json").write_text(texts[not tied])
        # Biases start at zero, so that two of them are equal although nothing ties them.
        found = set(codes(tmp_path / str(tied))) - {"duplicate-in-file"}
        assert found == (wrong if ties[True] != ties[False] else set())  # some types read no flag


@pytest.mark.parametrize("model_type", ["t5", "bart"])
def test_groups_of_four(tmp_path: Path, model_type: str):
    model = small_model(model_type, auto="AutoModelForSeq2SeqLM")
    model.save_pretrained(tmp_path)
    (group,) = tallystick.ties(tmp_path).groups
    names = {name for name, tensor in model.named_parameters(remove_duplicate=False) if tensor is model.lm_head.weight}
    assert (set(group.names), group.relation, len(names)) == (names, "tied", 4)
    stored = next(name for name in load_file(tmp_path / "model.safetensors") if name in names)
    stray = next(name for name in names if "encoder" in name)
    rewrite(tmp_path, lambda tensors: {**tensors, stray: tensors[stored].clone()})
    assert codes(tmp_path) == ["duplicate-in-file"]
    rewrite(tmp_path, lambda tensors: {**tensors, stray: tensors[stored] + 1})
    assert codes(tmp_path) == ["config-says-tied-file-differs"]


def test_a_layer_that_is_shared_and_stored_twice(tmp_path: Path):
    model = small_model("zamba")
    model.save_pretrained(tmp_path)
    first, second = (f"model.layers.{layer}.shared_transf.self_attn.q_proj.weight" for layer in (2, 7))
    assert model.get_parameter(first) is model.get_parameter(second)
    rewrite(tmp_path, lambda tensors: {**tensors, second: tensors[first] + 1})
    (problem,) = tallystick.ties(tmp_path).problems
    assert (problem.code, problem.names) == ("config-says-tied-file-differs", (first, second))


# -- flags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("top", "nested", "wrong"),
    [
        (True, True, []),
        (True, False, []),
        (None, False, []),  # the type's default ties it
        (False, True, ["config-says-untied-head-missing"]),
        (False, False, ["config-says-untied-head-missing"]),
    ],
)
def test_the_flag_at_the_top_decides_over_the_nested_one(tmp_path: Path, top: Any, nested: bool, wrong: list[str]):
    saved(tmp_path, "gemma3", tied=True)
    configure(tmp_path, **{FLAG: top, "text_config": {FLAG: nested}})
    _, info = transformers.AutoModelForImageTextToText.from_pretrained(tmp_path, output_loading_info=True)
    assert bool(info["missing_keys"]) == bool(wrong)
    assert codes(tmp_path) == wrong


def test_a_nested_flag_that_the_type_hands_up(tmp_path: Path):
    """LLaVA's configs of before transformers 5 say it in the part for text alone."""
    model = small_model("llava", auto="AutoModelForImageTextToText", tied=False)
    model.save_pretrained(tmp_path)
    configure(tmp_path, **{FLAG: None, "text_config": {FLAG: True}})
    assert codes(tmp_path) == ["config-says-tied-file-differs"]
    rewrite(tmp_path, lambda tensors: {name: t for name, t in tensors.items() if not name.endswith(HEAD)})
    assert codes(tmp_path) == []
    configure(tmp_path, **{FLAG: None, "text_config": {FLAG: False}})
    assert codes(tmp_path) == ["config-says-untied-head-missing"]


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [("t5", {FLAG: False}), ("mistral3", {FLAG: None, "text_config": {FLAG: False}})],
)
def test_a_type_that_is_tied_though_its_config_says_no(tmp_path: Path, model_type: str, settings: dict[str, Any]):
    """T5 1.1 and Mistral Small 3.1 hold a head of their own, which loaders leave as it is."""
    model = small_model(
        model_type, auto="AutoModelForSeq2SeqLM" if model_type == "t5" else "AutoModelForImageTextToText"
    )
    head = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    model.save_pretrained(tmp_path, state_dict={**model.state_dict(), HEAD: head})
    configure(tmp_path, **settings)
    loaded = type(model).from_pretrained(tmp_path)
    assert torch.equal(loaded.lm_head.weight, head)
    assert loaded.get_input_embeddings().weight is not loaded.lm_head.weight
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, answer.problems) == ("consistent", ())


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", ["gemma3", "unlimited_ocr"])
def test_names_of_today_and_of_before_say_the_same(tmp_path: Path, model_type: str):
    """Saved with the names of transformers 4, loaded under those of transformers 5, which not every
    renaming leaves alone.
    """
    model = small_model(model_type, tied=True, auto="AutoModelForImageTextToText")
    model.save_pretrained(tmp_path)
    today = {name: tensor for name, tensor in model.state_dict().items() if name != HEAD}
    before = load_file(tmp_path / "model.safetensors")
    assert set(today) != set(before)
    for tensors in (today, before):
        save_file(tensors, tmp_path / "model.safetensors")
        embedding = next(name for name in tensors if name.endswith("embed_tokens.weight"))
        configure(tmp_path, **{FLAG: True})
        (group,) = tallystick.ties(tmp_path).groups
        assert (group.names[0], group.relation) == (embedding, "tied")
        assert group.names[1].endswith(HEAD)
        configure(tmp_path, **{FLAG: False})
        assert codes(tmp_path) == ["config-says-untied-head-missing"]


@pytest.mark.parametrize("tied", [True, False])
def test_names_of_another_library_leave_it_unknown(tmp_path: Path, tied: bool):
    saved(tmp_path, "qwen3_moe", tied=tied)
    rewrite(tmp_path, lambda tensors: {f"their.{name.replace('.', '_')}.w": t for name, t in tensors.items()})
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, answer.problems) == ("unknown", ())
    assert "it may be missing or renamed" in answer.notes[0]


def test_a_body_of_other_names_leaves_it_unknown(tmp_path: Path):
    """The embedding alone proves nothing: the head may have another name too."""
    saved(tmp_path, "qwen3_moe", tied=False)
    other = {
        n: n if n == EMBEDDING else f"their.{n.replace('.', '_')}.w" for n in load_file(tmp_path / "model.safetensors")
    }
    rewrite(tmp_path, lambda tensors: {other[name]: tensor for name, tensor in tensors.items()})
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, answer.problems) == ("unknown", ())
    assert "are missing" in answer.notes[0]


@pytest.mark.parametrize("model_type", ["mistral", "qwen3_moe"])  # native, and not
def test_a_bare_model_lacks_its_head_rightly(tmp_path: Path, model_type: str):
    """Models for sentence embeddings are saved without a head, and their configs say that nothing
    is tied.
    """
    small_model(model_type, tied=False).model.save_pretrained(tmp_path)
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, answer.problems) == ("consistent", ())


@pytest.mark.parametrize("model_type", ["mistral", "qwen3_moe"])
def test_the_head_of_a_lone_shard_may_be_in_another(tmp_path: Path, model_type: str):
    saved(tmp_path, model_type, tied=False)
    rewrite(tmp_path, lambda tensors: {name: t for name, t in tensors.items() if name != HEAD})
    assert codes(tmp_path) == ["config-says-untied-head-missing"]
    shard = (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00002.safetensors")
    answer = tallystick.ties(shard)
    assert (answer.verdict, answer.problems) == ("unknown", ())
    assert "only shard 1 of 2 was counted" in answer.notes[0]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("model_type", ["mistral", "qwen3_moe"])
def test_neither_embedding_nor_head_is_there_under_its_name(tmp_path: Path, model_type: str, tied: bool):
    saved(tmp_path, model_type, tied=tied)
    rewrite(tmp_path, lambda tensors: {n: t for n, t in tensors.items() if n not in (EMBEDDING, HEAD)})
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, answer.problems) == ("unknown", ())
    assert "the embedding is not stored under its name either" in answer.notes[-1]


def test_a_body_without_the_prefix_of_its_model(tmp_path: Path):
    """Saved from the bare model, loaded into the one with a head: loaders put the prefix before
    each name.
    """
    model = small_model("qwen3_moe", tied=True)
    model.model.save_pretrained(tmp_path)
    configure(tmp_path, architectures=["Qwen3MoeForCausalLM"])
    (group,) = tallystick.ties(tmp_path).groups
    assert (group.names, group.relation) == (("embed_tokens.weight", HEAD), "tied")
    configure(tmp_path, **{FLAG: False})
    assert codes(tmp_path) == ["config-says-untied-head-missing"]


# -- without transformers -------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "wrong"), [(True, ["config-says-tied-file-differs"]), (False, [])])
def test_without_transformers_the_flag_alone_tells(tmp_path: Path, monkeypatch, flag: bool, wrong: list[str]):
    small_model("llava", auto="AutoModelForImageTextToText", tied=False).save_pretrained(tmp_path)
    configure(tmp_path, **{FLAG: flag})
    monkeypatch.setitem(sys.modules, "transformers", None)
    answer = tallystick.ties(tmp_path)
    assert [problem.code for problem in answer.problems] == wrong
    assert answer.verdict == ("contradiction" if wrong else "unknown")
    assert "the flag tie_word_embeddings only" in answer.notes[0]
    assert "pip install 'tallystick[hf]'" in answer.notes[0]


def test_a_type_that_transformers_does_not_know_is_told_by_its_flag(tmp_path: Path, capsys):
    saved(tmp_path, "qwen3_moe", tied=False)
    configure(tmp_path, **{FLAG: True, "model_type": "unheard_of", "architectures": ["UnheardForCausalLM"]})
    answer = tallystick.ties(tmp_path)
    assert [problem.code for problem in answer.problems] == ["config-says-tied-file-differs"]
    assert "neither tallystick nor transformers" in answer.notes[0]
    main(["ties", str(tmp_path)])
    assert "neither tallystick nor transformers" in " ".join(capsys.readouterr().out.split())


def test_a_count_asks_nobody(tmp_path: Path, monkeypatch):
    """A header is counted in an instant: transformers is for the ties of its types alone."""
    saved(tmp_path, "qwen3_moe", tied=True)
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert tallystick.count(tmp_path).total > 0
