"""How ties break in files, declarations and optimizers, and beside a tokenizer;
test_how_ties_break.py lists every row.
"""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file, save_model
from tokenizers import Tokenizer, models
from torch import nn
from transformers import GPT2LMHeadModel, LlamaForCausalLM, PreTrainedTokenizerFast

from broken_ties import HEAD, SIZE, WTE, gpt2, head_replaced, logits, mended, named, step
from tallystick import assert_tied, check_optimizer, count, retie, ties
from tallystick.cli.main import main
from tied_checkpoints import EMBEDDING, llama, rewrite, saved


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "in"


def reloaded(folder, kind=GPT2LMHeadModel, **more):
    model, info = kind.from_pretrained(folder, output_loading_info=True, **more)
    return model.eval(), info["missing_keys"]


def named_in(folder, code, names=(WTE, HEAD)):
    (problem,) = ties(folder).problems
    assert (problem.code, problem.names) == (code, names)
    return problem


def fixed(folder, *more):
    """Do what the remedy says: a mended copy, in which nothing is wrong."""
    out = folder.parent / "out"
    assert main(["ties", str(folder), "--fix", str(out), *more]) == 0
    answer = ties(out)
    assert (answer.verdict, answer.problems) == ("consistent", ())
    return out


# -- what the config says and the file holds ------------------------------------------------------


def test_a_head_trained_apart_is_saved_with_a_config_that_says_tied(folder, capsys):
    model = gpt2()
    head_replaced(model)
    model.save_pretrained(folder)
    loaded, _ = reloaded(folder)
    assert loaded.config.tie_word_embeddings is True
    assert loaded.lm_head.weight is not loaded.transformer.wte.weight
    named(loaded, "untied-head", "untied")
    older = gpt2()  # a loader that believes the config: the head's values, coming last, are the embedding's too
    older.load_state_dict(load_file(folder / "model.safetensors"))
    assert not torch.allclose(logits(older), logits(model))

    remedy = named_in(folder, "config-says-tied-file-differs").remedy
    assert "--as untied if the two were trained apart" in remedy
    assert main(["ties", str(folder)]) == 1
    loaded, _ = reloaded(fixed(folder, "--as", "untied"))
    assert loaded.config.tie_word_embeddings is False
    assert torch.equal(logits(loaded), logits(model))
    assert ties(loaded).verdict == "consistent"


def test_a_flag_that_says_false_of_a_file_without_a_head(folder):
    model = llama(tie_word_embeddings=True)
    saved(model, folder, tie_word_embeddings=False)
    loaded, missing = reloaded(folder, LlamaForCausalLM)
    assert missing == {HEAD}
    assert not torch.allclose(logits(loaded), logits(model))  # gibberish
    remedy = named_in(folder, "config-says-untied-head-missing", (HEAD,)).remedy
    assert "if it was trained tied, write a repaired copy" in remedy
    loaded, missing = reloaded(fixed(folder), LlamaForCausalLM)
    assert missing == set()
    assert torch.equal(logits(loaded), logits(model))


def test_a_save_that_drops_a_head_that_was_not_tied(folder):
    """What is left is consistent, and no longer the model: only before the save can it be told."""
    model = gpt2()
    head_replaced(model)
    call = named(model, "untied-head", "untied")

    def resumed():
        state = {name: tensor for name, tensor in model.state_dict().items() if name not in model.all_tied_weights_keys}
        model.save_pretrained(folder, state_dict=state)
        loaded, missing = reloaded(folder)
        assert (missing, ties(folder).verdict) == (set(), "consistent")
        return logits(loaded)

    assert not torch.allclose(resumed(), logits(model))
    mended(model, call)
    assert torch.equal(resumed(), logits(model))


# -- declarations ---------------------------------------------------------------------------------


def test_the_list_of_older_transformers_is_read(monkeypatch):
    """transformers 5 wants a dictionary, and trips over the list that code for older versions
    declares.
    """
    model = gpt2()
    monkeypatch.setattr(GPT2LMHeadModel, "_tied_weights_keys", [HEAD])
    with pytest.raises(AttributeError, match="'list' object has no attribute 'keys'"):
        gpt2()
    assert_tied(model)
    model.lm_head = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 101, bias=False))
    mended(model, named(model, "untied-head", "untied", (WTE, "lm_head.1.weight")))
    head_replaced(model)
    mended(model, named(model, "untied-head", "untied"))


def test_a_dictionary_that_names_the_head_as_the_source(folder, monkeypatch):
    """The embedding is what a save then leaves out, and what code that drops the keys as heads
    throws away.
    """
    monkeypatch.setattr(LlamaForCausalLM, "_tied_weights_keys", {EMBEDDING: HEAD})
    model = llama(tie_word_embeddings=True).eval()
    assert ties(model).problems == ()
    saved(model, folder)
    stored = load_file(folder / "model.safetensors").keys()
    assert (HEAD in stored, EMBEDDING in stored) == (True, False)
    (group,) = ties(folder).groups
    assert (set(group.names), group.relation, ties(folder).verdict) == ({EMBEDDING, HEAD}, "tied", "consistent")
    monkeypatch.undo()
    assert torch.equal(logits(reloaded(folder, LlamaForCausalLM)[0]), logits(model))

    monkeypatch.setattr(LlamaForCausalLM, "_tied_weights_keys", {EMBEDDING: HEAD})
    source = model.lm_head.weight
    model.model.embed_tokens.weight = nn.Parameter(source.detach().clone())
    mended(model, named(model, "copied-parameters", "copied", (HEAD, EMBEDDING)))
    assert model.model.embed_tokens.weight is source


# -- shared memory and duplicates -----------------------------------------------------------------


def test_shared_memory_is_refused_and_cloned_into_a_duplicate(folder, tmp_path):
    model = gpt2()
    model.save_pretrained(folder)
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        save_file(model.state_dict(), tmp_path / "refused.safetensors")
    assert [tie.names for tie in count(model).ties] == [(WTE, HEAD)]  # what it would have refused
    save_model(model, str(tmp_path / "once.safetensors"))
    assert ties(tmp_path / "once.safetensors").groups[0].relation == "tied"

    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    assert f"{4 * SIZE:,} duplicate bytes" in named_in(folder, "duplicate-in-file").message
    out = fixed(folder)
    assert load_file(out / "model.safetensors").keys() == state.keys() - {HEAD}
    assert torch.equal(logits(reloaded(out)[0]), logits(model))


def test_a_duplicate_head_is_offloaded_apart(folder, tmp_path):
    model = gpt2()
    model.save_pretrained(folder)
    rewrite(folder, lambda tensors: tensors.update({HEAD: tensors[WTE].clone()}))
    offloaded = {"device_map": {"transformer": "disk", "lm_head": "disk"}, "offload_folder": tmp_path / "offload"}
    loaded, _ = reloaded(folder, **offloaded)
    assert loaded.lm_head.weight is not loaded.transformer.wte.weight
    named(loaded, "untied-head", "unknown")
    named_in(folder, "duplicate-in-file")
    loaded, _ = reloaded(fixed(folder), **offloaded)
    assert ties(loaded).verdict == "consistent"
    assert torch.equal(logits(loaded), logits(model))


def test_a_merged_adapter_beside_the_config_of_its_base(folder, tmp_path):
    """`modules_to_save` trains a head of its own; the weights are merged, and served with the
    config of the base.
    """
    from peft import LoraConfig, get_peft_model

    base = gpt2()
    base.save_pretrained(tmp_path / "base")
    settings = {"target_modules": ["c_attn"], "fan_in_fan_out": True, "r": 2, "modules_to_save": ["lm_head"]}
    model = get_peft_model(base, LoraConfig(**settings))
    step(model, torch.optim.SGD([tensor for tensor in model.parameters() if tensor.requires_grad], lr=1.0))
    merged = model.merge_and_unload().eval()
    merged.save_pretrained(folder)
    assert ties(folder).problems == ()  # with the config that PEFT sets right when it merges
    shutil.copy(tmp_path / "base" / "config.json", folder)
    named_in(folder, "config-says-tied-file-differs")
    older = gpt2()
    older.load_state_dict(load_file(folder / "model.safetensors"))
    assert not torch.allclose(logits(older), logits(merged))
    assert torch.equal(logits(reloaded(fixed(folder, "--as", "untied"))[0]), logits(merged))


# -- optimizers -----------------------------------------------------------------------------------


def moved(model, optimizer):
    """By how much one step with a gradient of ones moves the tied matrix."""
    weight = model.transformer.wte.weight
    before, weight.grad = weight.detach().clone(), torch.ones_like(weight)
    optimizer.step()
    return (before - weight.detach()).mean().item()


def test_a_parameter_listed_twice_is_stepped_twice():
    model = gpt2()
    everything = [tensor for _, tensor in model.named_parameters(remove_duplicate=False)]
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.SGD(everything, lr=1.0)
    assert moved(model, optimizer) == pytest.approx(2)
    (found, _) = check_optimizer(model, optimizer)
    assert (found.code, found.names, found.problem) == ("listed-twice", (WTE, HEAD), True)
    assert found.remedy == "list each Parameter once, in one group"
    once = torch.optim.SGD(model.parameters(), lr=1.0)
    retie(model, optimizer=optimizer)
    for sound in (once, optimizer):
        assert [finding for finding in check_optimizer(model, sound) if finding.problem] == []
        assert moved(model, sound) == pytest.approx(1)


def test_a_parameter_in_two_groups():
    model = gpt2()
    wte, *others = model.parameters()
    with pytest.raises(ValueError, match="more than one parameter group"):
        torch.optim.SGD([{"params": [wte, *others]}, {"params": [model.lm_head.weight], "lr": 3.0}], lr=1.0)
    optimizer = torch.optim.SGD(
        [{"params": [wte, *others]}, {"params": [nn.Parameter(torch.ones(1))], "lr": 3.0}], lr=1.0
    )
    optimizer.param_groups[1]["params"][:] = [model.lm_head.weight]  # as code that edits groups by name does
    assert moved(model, optimizer) == pytest.approx(1 + 3)
    (found, _) = check_optimizer(model, optimizer)
    assert (found.code, found.names) == ("in-two-groups", (WTE, HEAD))
    optimizer.param_groups[1]["params"].clear()
    assert [finding for finding in check_optimizer(model, optimizer) if finding.problem] == []
    assert moved(model, optimizer) == pytest.approx(1)


def test_the_group_of_the_tied_matrix_decides_whether_it_decays():
    """Groups by name: `named_parameters` gives the pair its embedding's name alone, and embeddings
    are not decayed.
    """
    model = gpt2()
    plain = [tensor for name, tensor in model.named_parameters() if "wte" in name or tensor.ndim < 2]
    decayed = [tensor for name, tensor in model.named_parameters() if not ("wte" in name or tensor.ndim < 2)]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": 0.5}, {"params": plain, "weight_decay": 0.0}], lr=1.0
    )
    (found,) = check_optimizer(model, optimizer)
    assert (found.code, found.names, found.problem) == ("tied-decay", (WTE, HEAD), False)
    assert found.message == f"{WTE} = {HEAD} is in group 1, with weight_decay 0.0"
    weight = model.lm_head.weight

    def decays():
        before, weight.grad = weight.detach().clone(), torch.zeros_like(weight)
        optimizer.step()
        return (weight.detach() / before).mean().item()

    assert decays() == 1
    assert found.remedy == "move it to another group if this is not intended"
    optimizer.param_groups[0]["params"].append(optimizer.param_groups[1]["params"].pop(plain.index(weight)))
    (found,) = check_optimizer(model, optimizer)
    assert found.message == f"{WTE} = {HEAD} is in group 0, with weight_decay 0.5"
    assert decays() == pytest.approx(0.5)


# -- vocabularies ---------------------------------------------------------------------------------


def tokenizer(size):
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({f"w{number}": number for number in range(size)}, unk_token="w0"))
    )


def test_rows_that_pad_the_vocabulary_are_told(folder):
    model, words = gpt2(), tokenizer(101)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    assert not any("tokenizer" in note for note in count(folder).notes)
    model.resize_token_embeddings(101, pad_to_multiple_of=64)
    model.save_pretrained(folder)
    assert any(
        note == f"{WTE} has 128 rows, but the ids of tokenizer.json end at 100: 27 extra rows (216 parameters)"
        " that no token uses (padding)"
        for note in count(folder).notes
    )
    assert ties(folder).verdict == "consistent"


def test_tokens_without_a_row_are_told(folder):
    model, words = gpt2(), tokenizer(101)
    words.add_tokens(["<a>", "<b>", "<c>"])
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    last = torch.tensor([words.encode("<c>")])
    with pytest.raises(IndexError):
        model(last)
    (note,) = [note for note in count(folder).notes if "tokenizer" in note]
    assert note == (
        f"{WTE} has 101 rows, but the ids of tokenizer.json end at 103: the last 3 ids have no row; call"
        " model.resize_token_embeddings"
    )
    model.resize_token_embeddings(len(words))
    model(last)
    model.save_pretrained(folder)
    assert not any("tokenizer" in note for note in count(folder).notes)
    assert model.lm_head.weight is model.transformer.wte.weight


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"model": {"vocab": [["a", 0.0]] * 101}}, []),  # Unigram: a list with scores
        ({"model": {"vocab": [["a", 0.0]] * 100}, "added_tokens": [{"id": 100, "content": "<s>"}]}, []),
        ({"model": {"vocab": {"a": "x", "b": True}}, "added_tokens": [7, {}]}, []),
        ([], []),
        ('{"vocab": {"a": 1', ["its tokenizer was not used: {} is not JSON after vocab"]),
        ({"note": 'says "vocab": {"x": 999}', "model": {"vocab": [["a", 0.0]] * 101}}, []),
    ],
)
def test_tokenizers_of_every_kind_and_none(folder, content, said):
    gpt2().save_pretrained(folder)
    path = folder / "tokenizer.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    found = [note for note in count(folder).notes if "token" in note]
    assert [note.startswith(start.format(path)) for note, start in zip(found, said, strict=True)] == [True] * len(said)


def test_merges_behind_a_vocabulary_are_not_read(folder):
    """600,000 merges would take more memory than reading a source may."""
    gpt2().save_pretrained(folder)
    words = {"vocab": {f"w{number}": number for number in range(101)}, "merges": [["a", "b"]] * 600_000}
    (folder / "tokenizer.json").write_text(json.dumps({"model": words}))
    assert not any("token" in note for note in count(folder).notes)
