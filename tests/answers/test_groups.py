"""Groups of several names, biases, transposes and views: real models of transformers, one member
broken, told and mended.
"""

import copy
import re

import pytest
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

import tallystick
from tallystick import BadInput

ENCODER = {
    "vocab_size": 50,
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
ZAMBA = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 6, "num_attention_heads": 2,
    "num_key_value_heads": 2, "n_mamba_heads": 2, "mamba_d_state": 4, "layers_block_type": ["mamba", "hybrid"] * 3,
}  # fmt: skip
WORDS = 50 * 8  # elements of a table of words


def model_of(name, **config):
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    return kind(kind.config_class(**config)).eval()


def t5():
    return model_of("T5ForConditionalGeneration", vocab_size=50, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2)


def bart():
    sizes = {f"{side}_{what}": size for side in ("encoder", "decoder") for what, size in BART.items()}
    return model_of("BartForConditionalGeneration", vocab_size=50, d_model=8, max_position_embeddings=16, **sizes)


BART = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}


def albert():
    return model_of("AlbertForMaskedLM", **ENCODER, embedding_size=4, max_position_embeddings=16)


def bert():
    return model_of("BertForMaskedLM", **ENCODER, max_position_embeddings=16)


def roberta():
    return model_of("RobertaForMaskedLM", **ENCODER, max_position_embeddings=16)


def mamba():
    return model_of(
        "MambaForCausalLM", vocab_size=50, hidden_size=8, state_size=4, num_hidden_layers=1, time_step_rank=2
    )


def zamba():
    return model_of("ZambaForCausalLM", **ZAMBA, mamba_dt_rank=4)


def zamba2():
    return model_of("Zamba2ForCausalLM", **ZAMBA, mamba_headdim=16, mamba_ngroups=1, num_mem_blocks=1, adapter_rank=2)


Q = [f"model.layers.{layer}.shared_transf{{}}.self_attn.q_proj.weight" for layer in (1, 3, 5)]
CASES = [
    (t5, ["shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"], WORDS),
    (
        bart,
        [
            "model.shared.weight",
            "model.encoder.embed_tokens.weight",
            "model.decoder.embed_tokens.weight",
            "lm_head.weight",
        ],
        WORDS,
    ),
    (albert, ["albert.embeddings.word_embeddings.weight", "predictions.decoder.weight"], 50 * 4),
    (albert, ["predictions.bias", "predictions.decoder.bias"], 50),
    (bert, ["bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"], WORDS),
    (bert, ["cls.predictions.bias", "cls.predictions.decoder.bias"], 50),
    (roberta, ["lm_head.bias", "lm_head.decoder.bias"], 50),
    (mamba, ["backbone.embeddings.weight", "lm_head.weight"], WORDS),
    (zamba, [name.format("") for name in Q], 32 * 32),
    (zamba2, [name.format("ormer") for name in Q], 32 * 32),
]
MEMBERS = [(build, names, size, broken) for build, names, size in CASES for broken in names]


def put(model, name, parameter):
    """A Parameter of its own under one name."""
    module, _, last = name.rpartition(".")
    setattr(model.get_submodule(module), last, parameter)


@pytest.mark.parametrize(
    ("build", "names", "size", "broken"), MEMBERS, ids=[f"{build.__name__}-{broken}" for build, _, _, broken in MEMBERS]
)
def test_one_member_that_is_broken_is_named_alone_and_mended(build, names, size, broken):
    model = build()
    before = sum(parameter.numel() for parameter in model.parameters())
    whole = tallystick.ties(model)
    assert (whole.verdict, whole.problems) == ("consistent", ())
    assert {frozenset(names)} <= {frozenset(group.names) for group in whole.groups if group.relation == "tied"}

    put(model, broken, nn.Parameter(torch.randn_like(model.get_parameter(broken))))
    answer = tallystick.ties(model)
    (problem,) = answer.problems
    assert set(problem.names) == set(names)
    assert (answer.verdict, problem.code) == ("contradiction", "untied-head")
    stray, first, cost = re.match(r"(\S+) is no longer tied to (\S+): \+([\d,]+)", problem.message).groups()
    assert {stray, first} <= set(names)
    assert broken in ((stray,) if len(names) > 2 else (stray, first))
    assert int(cost.replace(",", "")) == size
    assert tallystick.count(model).total == before + size

    kept = next(name for name in names if name != broken)
    (done,) = tallystick.retie(model, keep=kept)
    assert (set(done.names), done.kept, done.was, done.parameters) == (set(names), kept, "untied", size)
    assert len({id(model.get_parameter(name)) for name in names}) == 1
    assert sum(parameter.numel() for parameter in model.parameters()) == before
    assert tallystick.ties(model) == whole


@pytest.mark.parametrize(("build", "block"), [(zamba, "shared_transf"), (zamba2, "shared_transformer")])
def test_a_shared_block_that_was_copied_is_named_tensor_by_tensor(build, block):
    model = build()
    tensors = dict(model.model.layers[3].get_submodule(block).named_parameters(remove_duplicate=False))
    with pytest.raises(AssertionError, match=r"layers\.3.* were tied and are copied"), tallystick.watch(model):
        setattr(model.model.layers[3], block, copy.deepcopy(model.model.layers[3].get_submodule(block)))
    answer = tallystick.ties(model)
    assert {problem.code for problem in answer.problems} == {"copied-parameters"}
    assert len(answer.problems) == len(tensors)
    assert all(problem.message.startswith(f"model.layers.3.{block}.") for problem in answer.problems)
    tallystick.retie(model)
    tallystick.assert_tied(model)
    assert tallystick.ties(model).problems == ()


def test_layers_that_run_several_times_have_one_name_and_no_tie():
    """ALBERT's layers are one module, run again and again: nothing is there twice to be tied."""
    model = albert()
    names = [name for name, _ in model.named_parameters(remove_duplicate=False) if "albert_layer" in name]
    assert len(names) == len(set(names)) > 0
    assert not any("albert_layer" in name for group in tallystick.ties(model).groups for name in group.names)


# -- transposes and views -------------------------------------------------------------------------


def gpt2():
    return model_of("GPT2LMHeadModel", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=16)


PAIR = ("transformer.wte.weight", "lm_head.weight")


@pytest.mark.parametrize(
    ("weight", "relation", "code"),
    [
        (lambda table: table.t(), "aliased", "aliased-parameters"),
        (lambda table: table.t().clone(), "copied", "copied-parameters"),
        (lambda table: table.t() + 1, "untied", "untied-head"),
    ],
)
def test_a_head_laid_out_the_other_way(weight, relation, code):
    """GPT-2's own Conv1D holds its matrix transposed: the values can be one, the Parameter
    cannot.
    """
    model = gpt2()
    model.lm_head = Conv1D(50, 8)
    model.lm_head.weight = nn.Parameter(weight(model.transformer.wte.weight.detach()))
    answer = tallystick.ties(model)
    assert [(group.names, group.relation) for group in answer.groups] == [(PAIR, relation)]
    (problem,) = answer.problems
    assert (problem.code, problem.remedy.startswith("give them the same shape")) == (code, True)
    with pytest.raises(BadInput, match=r"transposed: use an nn\.Linear head"):
        tallystick.retie(model, keep=PAIR[0])
    head = nn.Linear(8, 50, bias=False)
    head.weight = nn.Parameter(model.lm_head.weight.detach().t().contiguous())
    model.lm_head = head
    tallystick.retie(model, keep=PAIR[0])
    tallystick.assert_tied(model)


def test_a_view_of_some_rows_shares_those_and_is_no_tie():
    model = gpt2()
    model.lm_head = nn.Linear(8, 20, bias=False)
    model.lm_head.weight = nn.Parameter(model.transformer.wte.weight.detach()[10:30])
    before = tallystick.count(model)
    assert before.total == sum(parameter.numel() for parameter in model.parameters()) - 20 * 8
    answer = tallystick.ties(model)
    assert [(group.names, group.relation, group.parameters) for group in answer.groups] == [(PAIR, "aliased", 20 * 8)]
    assert [problem.code for problem in answer.problems] == ["aliased-parameters"]
    with pytest.raises(AssertionError, match="are aliased"):
        tallystick.assert_tied(model)
    with pytest.raises(BadInput, match="different shapes and cannot be tied"):
        tallystick.retie(model, keep=PAIR[0])


def test_two_slices_that_do_not_meet_share_nothing():
    model = nn.Module()
    flat = torch.randn(12, 4)
    model.query, model.key, model.all = (nn.Parameter(part) for part in (flat[:6], flat[6:], flat))
    groups = {group.names: group.relation for group in tallystick.ties(model).groups}
    assert ("query", "key") not in groups
    with pytest.raises(AssertionError, match="query and key are untied"):
        tallystick.assert_tied(model, "query", "key")
