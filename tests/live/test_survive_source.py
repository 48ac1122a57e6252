"""Operations on a source of the user's: a small model of it keeps its ties, or it is refused in one
line.
"""

import json

import pytest

from survival_lines import BY_NAME, lines
from tallystick import BadInput
from tallystick.cli.main import main
from tallystick.live import survive
from tallystick.live.shrink_config import cut
from tallystick.live.subjects import subject_of
from tallystick.live.survive import Survival


def source(name, *chosen, **settings):
    answer = survive.survive(name, settings, operations=[BY_NAME[operation] for operation in chosen])
    return {row.operation: row for row in answer.rows}


@pytest.mark.usefixtures("preloaded")
def test_a_small_model_of_a_preset_keeps_the_flags_and_ties_of_its_type():
    model = subject_of("qwen2.5-0.5b", {}).build()
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert model.model.layers[0].self_attn.q_proj.bias is not None  # as Qwen2 has it, and Llama has not
    assert (len(model.model.layers), model.lm_head.weight is model.model.embed_tokens.weight) == (2, True)
    assert sum(parameter.numel() for parameter in model.parameters()) < 100_000


def test_a_small_model_has_each_kind_of_layer(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma3_text"}))
    kinds = subject_of(str(tmp_path), {}).build().config.layer_types
    assert {kind: kinds.count(kind) for kind in kinds} == {"sliding_attention": 10, "full_attention": 2}


def test_the_operations_find_head_and_embedding_of_another_architecture(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "tie_word_embeddings": True}))
    subject = subject_of(str(tmp_path), {})
    assert (subject.embedding, subject.head) == ("gpt_neox.embed_in.weight", "lm_head.weight")
    rows = source(
        str(tmp_path),
        "model.head = nn.Linear(...)",
        "LoRA, modules_to_save=[head], ensure_weight_tying",
        "quantize_, int8 weights, head left out",
    )
    found = {name: (row.after, row.gradients, row.mended) for name, row in rows.items()}
    assert found == {
        "model.head = nn.Linear(...)": ("untied", "two tensors", "tied"),
        "LoRA, modules_to_save=[head], ensure_weight_tying": ("tied", "one tensor", ""),
        "quantize_, int8 weights, head left out": ("tied", "one tensor", ""),
    }


@pytest.mark.usefixtures("preloaded")
def test_a_factory_of_the_users_is_run_in_one_process_and_in_two(capfd):
    rows = source(
        "rank_tasks:own",
        "init_empty_weights",
        "save_pretrained, from_pretrained",
        "DistributedDataParallel",
        "fully_shard (FSDP2): blocks, root",
        tokens=20,
    )
    ours = rows["init_empty_weights"]
    assert (ours.after, ours.remedy, ours.mended) == ("aliased", "tie them with tallystick.retie(model)", "tied")
    theirs = rows["save_pretrained, from_pretrained"]
    assert (theirs.outcome, theirs.said) == ("not applicable", "Own is not a transformers model")
    both = rows["DistributedDataParallel"]
    assert (both.outcome, both.parameters, both.gradients) == ("kept", 0, "one tensor")
    assert rows["fully_shard (FSDP2): blocks, root"].said == "Own has no nn.ModuleList of blocks"
    assert capfd.readouterr() == ("", "")


def test_what_is_named_instead_is_no_remedy_where_it_loses_the_tie_too():
    losing = "LoRA, modules_to_save=[head]"
    rows = source(
        "rank_tasks:own", losing, f"{losing}, ensure_weight_tying"
    )  # which knows models of transformers alone
    assert (rows[losing].outcome, rows[losing].remedy) == ("lost", "")


def test_a_model_that_takes_more_than_token_ids_is_looked_at_without_gradients():
    answer = survive.survive("rank_tasks:two_inputs", operations=[BY_NAME["copy.deepcopy of the parts"]])
    (row,) = answer.rows
    assert (row.after, row.gradients, row.mended, row.mended_gradients) == ("copied", "", "tied", "")
    (note,) = answer.to_dict()["notes"]
    assert "missing 1 required positional argument: 'mask'" in note
    assert f"note: {note}" in lines(answer, "table")


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        (
            "llama-3-8b",
            {},
            "llama-3-8b has no head tied to its token embedding, so there is no tie to test",
        ),
        ("rank_tasks:own", {"tied": False}, "rank_tasks:own has no head tied to its token embedding, so"),
        ("rank_tasks:own", {"tokens": 13}, "rank_tasks:own has a vocabulary of 13, too few to distinguish"),
        (
            "rank_tasks:own",
            {"tokens": 3_000_000},
            "builds 24,000,072 parameters, more than the 20,000,000 allowed",
        ),
        (
            "rank_tasks:ONE",
            {},
            "rank_tasks:ONE returns the same module each time: name a function that builds a new one",
        ),
        ("gpt3", {}, "no preset or file 'gpt3'; nearest: gpt2"),
        ("gpt2", {"n_lyer": 2}, "gpt2 has no key 'n_lyer' to set; nearest: n_layer"),
        ("palm-8b", {}, "palm-8b: neither tallystick nor transformers"),
        ("model.safetensors", {}, "model.safetensors has weights but no config: name the folder with its config.json"),
        ("./nowhere/config.json", {}, "nowhere/config.json: No such file or directory"),
    ],
)
def test_a_source_of_which_nothing_can_be_shown_is_refused_in_one_line(name, settings, said):
    with pytest.raises(BadInput) as error:
        subject_of(name, settings)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_sizes_are_cut_and_everything_else_stays():
    layer = {"hidden_size": 4096, "head_dim": 128}
    config = {
        "text_config": {"n_layer": 3, "kinds": ["a", "b", "b"], "rates": [0.5, 0.5, 0.5], "num_attention_heads": 32},
        "num_hidden_layers": 40,
        "per_layer_config": {1: layer, 7: layer},
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 11,
        "use_cache": True,
        "attention_bias": True,
        "rope_theta": 1e6,
        "hidden_act": "silu",
    }
    assert cut(config) == {
        "text_config": {"n_layer": 3, "kinds": ["a", "b", "b"], "rates": [0.5, 0.5, 0.5], "num_attention_heads": 4},
        "num_hidden_layers": 2,
        "per_layer_config": {1: {"hidden_size": 32, "head_dim": 8}},
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 3,
        "use_cache": False,
        "attention_bias": True,
        "rope_theta": 1e6,
        "hidden_act": "silu",
    }


def test_what_cannot_be_made_small_is_said(tmp_path):
    config = {"model_type": "mamba2", "tie_word_embeddings": True, "expand": 3, "num_heads": 192}  # of 64 are 3 × 4096
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        BadInput, match=r"cannot build a small Mamba2ForCausalLM from its config .*: name a package\.module:factory"
    ):
        subject_of(str(tmp_path), {})


def test_the_page_of_a_source_names_it():
    answer = Survival({}, (), "my:model", ("something else.",))
    page = lines(answer, "markdown")
    assert any("on a small my:model." in line for line in page)
    assert "note: something else." in page
    assert not any("GPT-2" in line for line in page)


def test_settings_without_a_source_are_refused(capsys):
    assert main(["survive", "--set", "n_layer=2"]) == 2
    assert capsys.readouterr().err == "tallystick: --set overrides values of a source: name one\n"
