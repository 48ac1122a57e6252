"""Relations and verdicts: of live modules, of files that transformers saved, of files that
contradict their config.
"""

import json
import re
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn

import tallystick
from repository import ROOT
from rotating import some_by_commit
from small import CAUSAL, IMPOSSIBLE, small_model
from tallystick.cli.main import main
from tallystick.sources.checkpoint import values
from tied_checkpoints import EMBEDDING, HEAD, codes, llama, rewrite, saved
from unfilled import unfilled


def relations(answer):
    return [(group.names, group.relation, group.expected, group.parameters) for group in answer.groups]


# -- configs --------------------------------------------------------------------------------------


def test_a_config_ties_what_it_says():
    answer = tallystick.ties("gpt2")
    assert relations(answer) == [(("transformer.wte.weight", "lm_head.weight"), "tied", True, 38_597_376)]
    assert (answer.verdict, answer.problems) == ("consistent", ())
    assert tallystick.ties("llama-2-7b").groups == ()


# -- live modules ---------------------------------------------------------------------------------


def test_the_seed_a_replaced_head_is_named():
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
        model.lm_head = nn.Sequential(nn.Linear(768, 50257, bias=False))
    answer = tallystick.ties(model)
    # On the meta device there are no values: that they are apart is known, whether they are equal
    # is not.
    assert relations(answer) == [(("transformer.wte.weight", "lm_head.0.weight"), "unknown", True, 38_597_376)]
    assert (answer.verdict, codes(answer)) == ("contradiction", ["untied-head"])
    assert "lm_head.0.weight is no longer tied to transformer.wte.weight: +38,597,376" in answer.problems[0].message


def test_a_replaced_head_with_values_is_untied():
    model = llama(tie_word_embeddings=True)
    assert tallystick.ties(model).verdict == "consistent"
    model.lm_head = nn.Sequential(nn.Linear(8, 20, bias=False))
    answer = tallystick.ties(model)
    assert relations(answer) == [((EMBEDDING, "lm_head.0.weight"), "untied", True, 160)]
    assert (answer.verdict, codes(answer)) == ("contradiction", ["untied-head"])
    assert "+160" in answer.problems[0].message
    # The values differ, so that retie asks which of them stay: the remedy says it at once.
    assert 'tallystick.retie(model, keep="model.embed_tokens.weight")' in answer.problems[0].remedy
    with pytest.raises(tallystick.BadInput, match="keep="):
        tallystick.retie(model)
    tallystick.retie(model, keep=EMBEDDING)
    assert tallystick.ties(model).verdict == "consistent"


def test_a_copied_head_is_told_from_an_untied_one():
    model = llama(tie_word_embeddings=True)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    answer = tallystick.ties(model)
    assert codes(answer) == ["copied-parameters"]
    assert answer.groups[0].wasted_bytes == 160 * 4


def test_an_aliased_head_is_a_contradiction():
    model = llama(tie_word_embeddings=True)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.data)
    answer = tallystick.ties(model)
    assert (answer.verdict, codes(answer)) == ("contradiction", ["aliased-parameters"])


def test_what_nobody_meant_is_no_problem():
    answer = tallystick.ties(llama())
    assert relations(answer) == [((EMBEDDING, HEAD), "untied", False, 160)]
    assert (answer.verdict, answer.problems) == ("consistent", ())
    plain = nn.ModuleDict({"wte": nn.Embedding(5, 3), "lm_head": nn.Linear(3, 5, bias=False)})
    assert relations(tallystick.ties(plain)) == [(("wte.weight", "lm_head.weight"), "untied", None, 15)]


def test_a_group_of_four_from_transformers_own_list():
    config = transformers.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=12, num_layers=1, num_heads=2)
    model = transformers.T5ForConditionalGeneration(config)
    (group,) = tallystick.ties(model).groups
    assert (set(group.names), group.relation) == (
        {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"},
        "tied",
    )
    model.lm_head.weight = nn.Parameter(torch.randn(20, 8))
    answer = tallystick.ties(model)
    assert codes(answer) == ["untied-head"]
    assert "lm_head.weight is no longer tied to shared.weight: +160" in answer.problems[0].message


def test_a_ledger_keeps_no_model_alive():
    ledger = tallystick.count(llama(tie_word_embeddings=False))
    assert tallystick.ties(ledger).groups[0].relation == "unknown"


def test_two_groups_of_two_are_named_by_their_firsts():
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=12, num_layers=1, num_heads=2)
    )
    model.encoder.embed_tokens.weight = model.lm_head.weight = nn.Parameter(torch.randn(20, 8))
    (group,) = [group for group in tallystick.ties(model).groups if group.relation == "untied"]
    assert (len(group.names), group.parameters) == (4, 160)


@pytest.mark.parametrize("model_type", some_by_commit([kind for kind in CAUSAL if kind not in IMPOSSIBLE], 60))
def test_no_false_alarm_on_any_causal_model(model_type):
    """Each type that transformers builds, its default config cut to few layers, tied and not."""
    for tied in (True, False):
        with torch.device("meta"), unfilled():
            model = small_model(model_type, tied=tied)
        assert tallystick.ties(model).problems == ()


# -- checkpoints ----------------------------------------------------------------------------------


def test_a_head_in_the_file_that_differs_though_tied(tmp_path):
    saved(llama(tie_word_embeddings=False), tmp_path, tie_word_embeddings=True)
    answer = tallystick.ties(tmp_path)
    assert relations(answer) == [((EMBEDDING, HEAD), "untied", True, 160)]
    assert (answer.verdict, codes(answer)) == ("contradiction", ["config-says-tied-file-differs"])
    assert "loaders disagree" in answer.problems[0].message


def test_an_equal_head_in_the_file_is_a_duplicate(tmp_path):
    saved(llama(tie_word_embeddings=True), tmp_path)
    rewrite(tmp_path, lambda tensors: tensors.update({HEAD: tensors[EMBEDDING].clone()}))
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, codes(answer)) == ("consistent", ["duplicate-in-file"])
    assert answer.groups[0].wasted_bytes == 160 * 4


def test_a_head_under_the_bodys_prefix_is_the_head(tmp_path):
    """Loaders take the body's prefix off, so that it is the tied head that the file holds too."""
    saved(llama(tie_word_embeddings=True), tmp_path)
    rewrite(tmp_path, lambda tensors: tensors.update({f"model.{HEAD}": tensors[EMBEDDING].clone()}))
    answer = tallystick.ties(tmp_path)
    assert relations(answer) == [((EMBEDDING, f"model.{HEAD}"), "copied", True, 160)]
    assert codes(answer) == ["duplicate-in-file"]
    rewrite(tmp_path, lambda tensors: tensors[f"model.{HEAD}"].add_(1))
    assert codes(tallystick.ties(tmp_path)) == ["config-says-tied-file-differs"]


def test_the_last_byte_decides(tmp_path):
    saved(llama(tie_word_embeddings=True), tmp_path)

    def almost(tensors):
        tensors[HEAD] = tensors[EMBEDDING].clone()
        tensors[HEAD][-1, -1] += 1

    rewrite(tmp_path, almost)
    assert codes(tallystick.ties(tmp_path)) == ["config-says-tied-file-differs"]


def test_no_head_in_the_file_though_untied(tmp_path):
    saved(llama(tie_word_embeddings=True), tmp_path, tie_word_embeddings=False)
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, codes(answer)) == ("contradiction", ["config-says-untied-head-missing"])


def test_a_config_that_cannot_be_read_leaves_it_unknown(tmp_path):
    saved(llama(tie_word_embeddings=True), tmp_path, tie_word_embeddings="false")
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, codes(answer)) == ("unknown", ["config-not-read"])
    assert "tie_word_embeddings is the string 'false'" in answer.problems[0].message


@pytest.mark.parametrize("values", [{"tie_word_embeddings": True}, {"text_config": {"tie_word_embeddings": True}}])
def test_the_flag_of_a_type_that_is_not_native(tmp_path, values):
    saved(llama(tie_word_embeddings=False), tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "unheard_of", **values}))
    assert codes(tallystick.ties(tmp_path)) == ["config-says-tied-file-differs"]
    rewrite(tmp_path, lambda tensors: tensors.update({HEAD: tensors[EMBEDDING].clone()}))
    assert codes(tallystick.ties(tmp_path)) == ["duplicate-in-file"]
    rewrite(tmp_path, lambda tensors: tensors.pop(HEAD))
    assert tallystick.ties(tmp_path).problems == ()


def test_a_matrix_that_begins_as_no_other_is_not_read_whole(tmp_path, monkeypatch):
    read = []
    blocks = values._blocks
    monkeypatch.setattr(values, "_blocks", lambda stored, size: read.append(size) or blocks(stored, size))
    tensors = {name: torch.arange(8192.0).reshape(64, 128) * step for step, name in enumerate("abc", 1)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert not list(tallystick.count(tmp_path).evidence.values.duplicates())
    assert read == [values.SAMPLE] * 3


def test_duplicates_that_nobody_meant_are_found(tmp_path):
    """Byte-equal matrices anywhere; norms and constants are equal by the hundred, and are not worth
    a line.
    """
    saved(llama(), tmp_path)
    up, gate = "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.gate_proj.weight"
    rewrite(tmp_path, lambda tensors: tensors.update({gate: tensors[up].clone()}))
    (tmp_path / "config.json").unlink()
    answer = tallystick.ties(tmp_path)
    assert [(set(group.names), group.relation, group.expected) for group in answer.groups] == [
        ({up, gate}, "copied", None),
        ({EMBEDDING, HEAD}, "untied", None),
    ]
    assert answer.groups[0].wasted_bytes == 96 * 4
    assert (answer.problems, answer.verdict) == ((), "unknown")  # nothing says whether the head should be the embedding


def test_three_equal_matrices_are_one_group(tmp_path, monkeypatch):
    monkeypatch.setattr("tallystick.sources.checkpoint.values.SAMPLE", 16)
    matrix = torch.randn(6, 6)
    almost = matrix.clone()
    almost[-1, -1] += 1
    save_file({"a.w": matrix, "b.w": matrix.clone(), "c.w": almost, "d.w": matrix.clone()}, tmp_path / "x.safetensors")
    (group,) = tallystick.ties(tmp_path).groups
    assert (set(group.names), group.relation, group.parameters) == ({"a.w", "b.w", "d.w"}, "copied", 72)


def test_tensors_larger_than_a_block_and_in_two_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("tallystick.sources.checkpoint.values.BLOCK", 64)
    monkeypatch.setattr("tallystick.sources.checkpoint.values.SAMPLE", 16)
    head = torch.randn(20, 8)
    other = head.clone()
    other[-1, -1] += 1
    save_file({EMBEDDING: head}, tmp_path / "a.safetensors")
    save_file({HEAD: head.clone(), "model.layers.0.mlp.up_proj.weight": other}, tmp_path / "b.safetensors")
    weight_map = {
        EMBEDDING: "a.safetensors",
        HEAD: "b.safetensors",
        "model.layers.0.mlp.up_proj.weight": "b.safetensors",
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    answer = tallystick.ties(tmp_path)
    assert [set(group.names) for group in answer.groups] == [{EMBEDDING, HEAD}]


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    saved(llama(tie_word_embeddings=False), tmp_path, tie_word_embeddings=True)
    ledger = tallystick.count(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(tallystick.BadInput, match="shrank while it was read"):
        tallystick.ties(ledger)


# -- the command ----------------------------------------------------------------------------------


def test_the_command_exits_1_when_something_contradicts(tmp_path, capsys):
    saved(llama(tie_word_embeddings=False), tmp_path, tie_word_embeddings=True)
    assert main(["ties", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f"{tmp_path}: contradiction" in out
    assert "config-says-tied-file-differs" in out
    assert main(["ties", str(tmp_path), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == tallystick.ties(tmp_path).to_dict()
    assert main(["ties", "gpt2"]) == 0
    assert "tied" in capsys.readouterr().out
    assert main(["ties", "llama-2-7b", "--format", "markdown"]) == 0
    assert "no tied weights" in capsys.readouterr().out
    assert main(["ties", "gpt2", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "relation,names,expected,parameters",
        'tied,"transformer.wte.weight, lm_head.weight",yes,38597376',
    ]


def test_to_dict_is_the_contract():
    out = tallystick.ties("gpt2").to_dict()
    assert list(out) == ["source", "kind", "groups", "verdict", "problems", "notes"]
    assert list(out["groups"][0]) == ["names", "relation", "expected", "parameters", "wasted_bytes", "why"]
    assert json.loads(json.dumps(out)) == out


def test_every_code_has_its_page():
    package = Path(tallystick.__file__).parent
    code = "".join(
        (package / name).read_text(encoding="utf-8") for name in ("answers/ties/ties.py", "live/optimizer.py")
    )
    given = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code)) - {"tied-decay", "bad-value"}  # these are no problems
    pages = ROOT / "docs" / "problems"
    assert {page.stem for page in pages.glob("*.md")} == given | {"README"}
    listed = re.findall(r"^\| \[(.+)\]\((.+)\.md\)", (pages / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for name, page in listed if name == page} == given
    for name in given:
        page = (pages / f"{name}.md").read_text(encoding="utf-8")
        assert re.findall(r"^## (.+)$", page, re.MULTILINE) == ["Causes", "Fix", "Not this problem"]
        assert re.search(r"\nBefore:\n\n```\w+\n.+\n```\n\nAfter:\n\n```\w+\n", page, re.DOTALL)


def test_what_acts_on_live_modules_is_there_when_asked_for():
    model = llama(tie_word_embeddings=True)
    tallystick.assert_tied(model)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    with pytest.raises(AssertionError, match=r"tallystick\.retie\(model\)"):
        tallystick.assert_tied(model)
    tallystick.retie(model)
    tallystick.assert_tied(model)
    assert tallystick.ties(model).verdict == "consistent"
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        tallystick.nothing_of_ours  # noqa: B018
