"""A broken tie is made again, or refused in one line where that cannot be."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, GPT2Model, T5Config, T5Model
from transformers import T5ForConditionalGeneration as T5

from live_models import HEAD, T5_TINY, TINY, WTE, Plain, Wrapper, gpt2, one_line, replaced
from tallystick import BadInput, count
from tallystick.live import NotTied, assert_kept, assert_tied, retie

__all__ = ["gpt2"]  # a fixture


def test_the_seed():
    model = GPT2LMHeadModel(GPT2Config())
    model.lm_head = nn.Sequential(nn.Linear(768, 50257, bias=False))
    assert count(model).total == 163_037_184
    with pytest.raises(BadInput) as error:
        retie(model)
    message = one_line(error)
    assert WTE in message
    assert "lm_head.0.weight" in message
    assert f'keep="{WTE}"' in message
    (done,) = retie(model, keep=WTE)
    assert (done.names, done.kept, done.was) == ((WTE, "lm_head.0.weight"), WTE, "untied")
    assert done.parameters == 38_597_376
    assert count(model).total == 124_439_808
    assert model.lm_head[0].weight.data_ptr() == model.transformer.wte.weight.data_ptr()


@pytest.mark.parametrize("tied", [True, False])
def test_the_gradients_of_both_uses_add_up_in_one_tensor(tied):
    torch.manual_seed(0)
    model = Plain(tie=False).double()
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach().clone())  # aliased or copied: two gradients
    ids, target = torch.tensor([1, 2, 2]), torch.tensor([2, 3, 4])
    if tied:
        retie(model)
    nn.functional.cross_entropy(model(ids), target).backward()
    if tied:
        assert model.lm_head.weight.grad is model.wte.weight.grad
    together = model.wte.weight.grad

    def alone(embedding, head):
        weight = model.wte.weight.detach().clone().requires_grad_()
        used = nn.functional.embedding(ids, weight if embedding else weight.detach())
        logits = used @ (weight if head else weight.detach()).T
        nn.functional.cross_entropy(logits, target).backward()
        return weight.grad

    expected = alone(True, False) + (alone(False, True) if tied else 0)
    torch.testing.assert_close(together, expected)


def test_which_values_stay():
    for keep in ("wte.weight", "lm_head.weight"):
        model = Plain(tie=False)
        values = model.get_parameter(keep).detach().clone()
        kept = model.get_parameter(keep)
        (done,) = retie(model, keep=keep)
        assert done.kept == keep
        assert model.wte.weight is model.lm_head.weight is kept
        assert torch.equal(kept, values)


def test_nothing_changes_when_refused():
    model = T5(T5Config(**T5_TINY))
    model.encoder.embed_tokens.weight = nn.Parameter(model.shared.weight.detach().clone())
    model.decoder.embed_tokens.weight = nn.Parameter(torch.randn(50, 8))
    with pytest.raises(BadInput, match=r"shared\.weight and decoder\.embed_tokens\.weight hold different values"):
        retie(model)
    assert model.encoder.embed_tokens.weight is not model.shared.weight


def test_a_chain_of_names_is_one_group():
    model = T5(T5Config(**T5_TINY))
    assert_tied(model)
    for module in (model.encoder.embed_tokens, model.decoder.embed_tokens, model.lm_head):
        module.weight = nn.Parameter(model.shared.weight.detach().clone())
    with pytest.raises(NotTied, match="1,200 more parameters"):
        assert_tied(model)
    (done,) = retie(model)
    assert len(done.names) == 4
    assert done.parameters == 3 * 50 * 8
    assert_tied(model)
    model.lm_head.weight = nn.Parameter(torch.randn(50, 8))  # the last of the group alone
    with pytest.raises(NotTied, match=r"are untied .* 400 more parameters"):
        assert_tied(model)


def test_a_tied_bias_goes_along():
    model = BertForMaskedLM(
        BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    )
    model.cls.predictions.decoder = copy.deepcopy(model.cls.predictions.decoder)
    with pytest.raises(NotTied, match=r"cls\.predictions\.decoder\.bias"):
        assert_tied(model)
    assert {done.parameters for done in retie(model)} == {30 * 8, 30}
    assert_tied(model)


def test_a_name_beyond_the_group_goes_along():
    model = Plain(tie=False)
    model.second = nn.Linear(3, 7, bias=False)
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach().clone())
    model.second.weight = model.lm_head.weight
    retie(model, "wte.weight", "lm_head.weight")
    assert model.second.weight is model.wte.weight


def test_names_that_no_rule_knows():
    model = Plain("table", "to_words", tie=False)
    (done,) = retie(model, keep="table.weight")
    assert done.names == ("table.weight", "to_words.weight")
    model = Plain("a", "b", tie=False)
    model.extra = nn.Linear(3, 7, bias=False)
    with pytest.raises(BadInput, match=r"several tensors of Plain could be tied \(b\.weight, extra\.weight\)"):
        retie(model)
    with pytest.raises(NotTied) as error:
        assert_tied(model, "a.weight", "extra.weight")
    assert one_line(error).endswith('tallystick.retie(model, "a.weight", "extra.weight", keep="a.weight")')
    retie(model, "a.weight", "extra.weight", keep="a.weight")
    assert model.extra.weight is model.a.weight is not model.b.weight


def test_a_head_of_ones_own_on_a_backbone():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = GPT2Model(GPT2Config(**TINY))
            self.lm_head = nn.Linear(8, 101, bias=False)

    model = Own()
    with pytest.raises(NotTied):
        assert_tied(model)
    (done,) = retie(model, keep="backbone.wte.weight")
    assert done.names == ("backbone.wte.weight", "lm_head.weight")


def test_wrapped_in_compile(gpt2):
    replaced(gpt2)
    model = torch.compile(gpt2)
    with pytest.raises(NotTied, match=f"^{WTE} and {HEAD} are untied"):
        assert_tied(model)
    retie(model, keep=f"_orig_mod.{WTE}")
    assert gpt2.lm_head.weight is gpt2.transformer.wte.weight
    assert_tied(model, f"_orig_mod.{WTE}", f"_orig_mod.{HEAD}")


def test_inside_another_module(gpt2):
    replaced(gpt2)
    retie(Wrapper(torch.compile(gpt2)), keep=f"model.{WTE}")
    assert_tied(gpt2)


def test_a_wrapper_that_registered_the_parameters_is_refused(lone_rank):
    model = DistributedDataParallel(Plain(tie=False))
    with pytest.raises(BadInput, match=r"DistributedDataParallel has already registered .* tie the model first"):
        retie(model, keep="wte.weight")
    tied = DistributedDataParallel(Plain())
    assert_tied(tied)
    assert retie(tied) == []
    assert_kept(tied.module, tied)


def refused(model, match, *names, **options):
    before = dict(model.named_parameters(remove_duplicate=False))
    with pytest.raises(BadInput, match=match) as error:
        retie(model, *names, **options)
    one_line(error)
    after = dict(model.named_parameters(remove_duplicate=False))
    assert all(after[name] is before[name] for name in before)


def test_what_cannot_be_one_is_refused(gpt2):
    shorter = Plain(tie=False)
    shorter.lm_head = nn.Linear(3, 8, bias=False)
    refused(shorter, "no token embedding and head with the same shape")
    refused(shorter, r"\(7, 3\) and lm_head.weight \(8, 3\) have different shapes", "wte.weight", "lm_head.weight")
    refused(shorter, "different shapes", "wte.weight", "lm_head.weight", keep="wte.weight")

    transposed = Plain(tie=False)
    transposed.lm_head.weight = nn.Parameter(transposed.wte.weight.detach().t())
    refused(transposed, r"lm_head.weight \(3, 7\) is wte.weight \(7, 3\) transposed", keep="wte.weight")

    other = Plain()
    other.lm_head.weight = nn.Parameter(other.wte.weight.detach().bfloat16())
    refused(other, r"different dtypes \(torch.float32, torch.bfloat16\): choose one to keep")
    frozen = Plain()
    frozen.lm_head.weight = nn.Parameter(frozen.wte.weight.detach().clone(), requires_grad=False)
    refused(frozen, r"different requires_grad \(True, False\)")
    half_meta = Plain(tie=False)
    half_meta.lm_head.to("meta")
    refused(half_meta, r"different devices \(cpu, meta\)")
    (done,) = retie(half_meta, keep="wte.weight")
    assert done.was == "unknown"
    assert half_meta.lm_head.weight.device.type == "cpu"


def test_bad_names_are_answered_with_the_nearest(gpt2):
    for call in (assert_tied, retie):
        with pytest.raises(BadInput, match=r"no parameter 'lm_haed\.weight'; nearest: lm_head\.weight"):
            call(gpt2, WTE, "lm_haed.weight")
        with pytest.raises(BadInput, match="to nothing"):
            call(gpt2, WTE)
        with pytest.raises(BadInput, match=r"expected a torch\.nn\.Module"):
            call("gpt2")
    with pytest.raises(BadInput, match=r"transformer\.ln_f\.bias is not among the tensors to tie"):
        retie(gpt2, keep="transformer.ln_f.bias")


def test_a_config_that_ties_nothing():
    model = GPT2LMHeadModel(GPT2Config(**TINY, tie_word_embeddings=False))
    assert_tied(model)
    refused(model, "ties nothing: set tie_word_embeddings to true", keep=WTE)
    model.config.tie_word_embeddings = True
    retie(model, keep=WTE)
    assert_tied(model)


def test_a_model_without_a_head_cannot_be_asserted():
    with pytest.raises(BadInput, match="no token embedding and head"):
        assert_tied(nn.Sequential(nn.Linear(3, 3)))
    assert_tied(T5Model(T5Config(**T5_TINY)))  # no head either, but its embeddings are meant to be one


def test_equal_means_equal_bits():
    for first, second, relation in ((float("nan"), float("nan"), "copied"), (0.0, -0.0, "untied")):
        model = Plain(tie=False)
        nn.init.constant_(model.wte.weight, first)
        nn.init.constant_(model.lm_head.weight, second)
        with pytest.raises(NotTied, match=f"are {relation} "):
            assert_tied(model)


def test_the_remedy_that_is_named_is_one_that_retie_takes(gpt2):
    model = gpt2
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone(), requires_grad=False)
    with pytest.raises(NotTied) as lost:
        assert_tied(model)
    call = str(lost.value).rpartition("tie them with ")[2]
    eval(call, {"tallystick": __import__("tallystick"), "model": model})
    assert_tied(model)
