"""Mended copies of checkpoints: what transformers loads from them, what is kept byte for byte, and
what is refused.
"""

import json
import os
import stat

import pytest
import torch
import transformers
from safetensors.torch import load_file

import tallystick
from tallystick.cli.main import main
from tied_checkpoints import EMBEDDING, HEAD, llama, rewrite, saved


def fix(folder, out, *more):
    return main(["ties", str(folder), "--fix", str(out), *more])


def logits(folder):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    return model, model(torch.arange(20)[None]).logits


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "in", tmp_path / "out"


def test_a_duplicate_is_stored_once(folders, capsys):
    model = llama(tie_word_embeddings=True)
    saved(model, folders[0])
    rewrite(folders[0], lambda tensors: tensors.update({HEAD: tensors[EMBEDDING].clone()}))
    (folders[0] / "tokenizer.json").write_text("{}")
    (folders[0] / "sub").mkdir()
    (folders[0] / "sub" / "notes.txt").write_text("kept")
    assert fix(*folders) == 0
    assert "removed lm_head.weight from the file" in capsys.readouterr().out
    before, after = (load_file(folder / "model.safetensors") for folder in folders)
    assert before.keys() - after.keys() == {HEAD}
    assert all(torch.equal(before[name], after[name]) for name in after)
    assert (folders[1] / "tokenizer.json").read_text() == "{}"
    assert (folders[1] / "sub" / "notes.txt").read_text() == "kept"
    answer = tallystick.ties(folders[1])
    assert (answer.verdict, answer.problems) == ("consistent", ())
    loaded, out = logits(folders[1])
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    assert torch.equal(out, model(torch.arange(20)[None]).logits)


def test_different_values_are_not_dropped_unasked(folders, capsys):
    saved(llama(tie_word_embeddings=False), folders[0], tie_word_embeddings=True)
    assert fix(*folders) == 2
    error = capsys.readouterr().err
    assert "--as tied drops the trained lm_head.weight" in error
    assert "--as untied keeps both" in error
    assert os.listdir(folders[0].parent) == ["in"]


def test_as_untied_sets_the_config_right(folders):
    model = llama(tie_word_embeddings=False)
    saved(model, folders[0], tie_word_embeddings=True)
    assert fix(*folders, "--as", "untied") == 0
    loaded, out = logits(folders[1])
    assert loaded.config.tie_word_embeddings is False
    assert torch.equal(out, model(torch.arange(20)[None]).logits)
    assert load_file(folders[1] / "model.safetensors").keys() == load_file(folders[0] / "model.safetensors").keys()


def test_as_tied_gives_up_the_head(folders):
    saved(llama(tie_word_embeddings=False), folders[0], tie_word_embeddings=True)
    assert fix(*folders, "--as", "tied") == 0
    loaded, _ = logits(folders[1])
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    assert tallystick.ties(folders[1]).problems == ()


def test_a_missing_head_is_declared_tied(folders):
    model = llama(tie_word_embeddings=True)
    saved(model, folders[0], tie_word_embeddings=False)
    assert fix(*folders, "--as", "untied") == 2
    assert fix(*folders) == 0
    _, out = logits(folders[1])
    assert torch.equal(out, model(torch.arange(20)[None]).logits)


def test_shards_and_index_are_kept(folders):
    model = llama(tie_word_embeddings=False)
    model.save_pretrained(folders[0], max_shard_size="1KB")
    path = folders[0] / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tie_word_embeddings": True}))
    assert fix(*folders, "--as", "tied") == 0
    index = json.loads((folders[1] / "model.safetensors.index.json").read_text())
    before = json.loads((folders[0] / "model.safetensors.index.json").read_text())
    assert before["weight_map"].keys() - index["weight_map"].keys() == {HEAD}
    assert before["metadata"]["total_size"] - index["metadata"]["total_size"] == 160 * 4
    assert set(index["weight_map"].values()) == {p.name for p in folders[1].glob("*.safetensors")}
    loaded, _ = logits(folders[1])
    assert torch.equal(loaded.model.embed_tokens.weight, model.model.embed_tokens.weight)
    untied = folders[1].parent / "untied"
    assert fix(folders[0], untied, "--as", "untied") == 0
    for shard in untied.glob("*.safetensors"):
        first, second = load_file(shard), load_file(folders[0] / shard.name)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_what_is_refused(folders, capsys):
    saved(llama(tie_word_embeddings=True), folders[0])
    assert fix(*folders) == 2
    assert "has no tie to repair" in capsys.readouterr().err
    path = folders[0] / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tie_word_embeddings": False}))
    folders[1].mkdir()
    assert fix(*folders) == 2
    assert "already exists" in capsys.readouterr().err
    assert os.listdir(folders[1]) == []
    assert fix(folders[0] / "model.safetensors", folders[1] / "x") == 2
    assert "is not a folder" in capsys.readouterr().err
    assert fix(folders[0], folders[1] / "nowhere" / "x") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["ties", str(folders[0]), "--as", "tied"]) == 2


def test_a_config_that_cannot_be_read_is_not_mended(folders, capsys):
    saved(llama(tie_word_embeddings=True), folders[0], tie_word_embeddings="false")
    assert fix(*folders) == 2
    assert "tie_word_embeddings is the string 'false'" in capsys.readouterr().err


def test_a_full_disk_leaves_nothing_behind(folders, monkeypatch, capsys):
    saved(llama(tie_word_embeddings=False), folders[0], tie_word_embeddings=True)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tallystick.sources.checkpoint.repair._write_file", full)
    assert fix(*folders, "--as", "tied") == 2
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir(folders[0].parent) == ["in"]


def test_the_copy_is_as_open_as_the_original(folders):
    saved(llama(tie_word_embeddings=False), folders[0], tie_word_embeddings=True)
    folders[0].chmod(0o755)
    assert fix(*folders, "--as", "tied") == 0
    assert stat.S_IMODE(folders[1].stat().st_mode) == 0o755
