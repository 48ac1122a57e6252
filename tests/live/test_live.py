"""Live ties: broken by the real operations, named, watched, and made again."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, GPT2Model, T5Config, T5Model
from transformers import T5ForConditionalGeneration as T5

from tallystick import BadInput, count
from tallystick.live import NotTied, TieLost, assert_kept, assert_tied, check_optimizer, retie, watch

WTE, HEAD = "transformer.wte.weight", "lm_head.weight"
TINY = {"vocab_size": 101, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}
SIZE = 101 * 8
T5_TINY = {"vocab_size": 50, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}


@pytest.fixture
def gpt2():
    return GPT2LMHeadModel(GPT2Config(**TINY))


class Plain(nn.Module):
    """A model that no library knows."""

    def __init__(self, embedding="wte", head="lm_head", *, tie=True):
        super().__init__()
        self.add_module(embedding, nn.Embedding(7, 3))
        self.add_module(head, nn.Linear(3, 7, bias=False))
        if tie:
            self.get_submodule(head).weight = self.get_submodule(embedding).weight

    def forward(self, ids):
        embedding, head = self.children()
        return head(embedding(ids))


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


# -- operations (how ties break is in test_how_ties_break.py) --------------------------------------


def replaced(model):
    model.lm_head = nn.Linear(8, 101, bias=False)


def in_sequential(model):
    model.lm_head = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 101, bias=False))


HARMLESS = [
    lambda model: model.to(torch.bfloat16),
    lambda model: model.half(),
    lambda model: model.resize_token_embeddings(120),
    lambda model: model.resize_token_embeddings(90),
    lambda model: model.load_state_dict(model.state_dict()),
    lambda model: model.tie_weights(),
    lambda model: model.requires_grad_(False),
    lambda model: model.compile(),
    lambda model: nn.init.zeros_(model.transformer.wte.weight),
    lambda model: nn.init.ones_(model.transformer.ln_f.bias),
]


@pytest.mark.parametrize("operation", HARMLESS)
def test_what_keeps_a_tie_raises_no_alarm(gpt2, operation):
    with watch(gpt2):
        operation(gpt2)
    assert_tied(gpt2)


def saved_and_loaded(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


NEW_OBJECTS = [
    copy.deepcopy,
    saved_and_loaded,
    lambda model: pickle.loads(pickle.dumps(model)),
    torch.compile,
    lambda model: copy.deepcopy(model).to(torch.float64),
    Wrapper,
]


@pytest.mark.parametrize("operation", NEW_OBJECTS)
def test_a_new_object_keeps_the_tie_or_not(gpt2, operation):
    after = operation(gpt2)
    assert_kept(gpt2, after)
    assert_tied(after)
    broken = copy.deepcopy(after)
    head = next(module for name, module in broken.named_modules() if name.endswith("lm_head"))
    head.weight = nn.Parameter(head.weight.detach().clone())
    with pytest.raises(TieLost, match="were tied and are copied"):
        assert_kept(gpt2, broken)
    with pytest.raises(TieLost, match="were tied and are copied"), watch(gpt2) as watched:
        watched.returned(broken)


def test_a_reload_that_unties(gpt2, tmp_path):
    gpt2.save_pretrained(tmp_path)
    assert_kept(gpt2, GPT2LMHeadModel.from_pretrained(tmp_path))
    with pytest.raises(TieLost):
        assert_kept(gpt2, GPT2LMHeadModel.from_pretrained(tmp_path, tie_word_embeddings=False))


# -- retie ----------------------------------------------------------------------------------------


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


# -- watch ----------------------------------------------------------------------------------------


def test_an_exception_from_inside_passes_untouched(gpt2):
    error = RuntimeError("theirs")

    def fail():
        replaced(gpt2)
        raise error

    with pytest.raises(RuntimeError) as caught, watch(gpt2):
        fail()
    assert caught.value is error


def test_a_warning_points_at_the_with_and_the_call(gpt2):
    with pytest.warns(UserWarning, match="were tied and are untied") as caught, watch(gpt2, warn=True):
        replaced(gpt2)
    assert caught[0].filename == __file__
    tied = GPT2LMHeadModel(GPT2Config(**TINY))
    with pytest.warns(UserWarning, match="were tied and are untied") as caught:
        assert_kept(tied, gpt2, warn=True)
    assert caught[0].filename == __file__


def test_what_was_untied_before_is_no_loss(gpt2):
    replaced(gpt2)
    with watch(gpt2):
        gpt2.set_output_embeddings(nn.Linear(8, 101, bias=False))
        gpt2.to("meta")


def test_ties_that_nobody_named_are_watched():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model[2].bias = nn.Parameter(model[0].bias.data)
    with pytest.raises(TieLost) as error, watch(model):
        model.load_state_dict(
            {
                f"{layer}.{name}": torch.randn(3, 3)[0] if name == "bias" else torch.randn(3, 3)
                for layer in range(3)
                for name in ("weight", "bias")
            },
            assign=True,
        )
    message = one_line(error)
    assert "0.weight and 1.weight were tied and are untied" in message
    assert "0.bias and 2.bias were aliased and are untied" in message
    assert 'tallystick.retie(model, "0.weight", "1.weight", keep="0.weight")' in message


def test_a_copy_that_trains_apart_is_a_loss():
    model = Plain()
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach().clone())
    with pytest.raises(TieLost, match="were copied and are untied"), watch(model):
        nn.init.ones_(model.lm_head.weight)


def test_a_replaced_tensor_is_found_where_it_is_now_or_gone(gpt2):
    with pytest.raises(TieLost, match=r"now as transformer\.wte\.weight and lm_head\.1\.weight"), watch(gpt2):
        in_sequential(gpt2)
    gpt2 = GPT2LMHeadModel(GPT2Config(**TINY))
    with pytest.raises(TieLost, match="are gone"), watch(gpt2):
        gpt2.lm_head = nn.Identity()


def test_beside_an_adapter_the_layer_that_runs_is_meant(gpt2):
    """As PEFT wraps: LoRA of a rank that is the width, and a trained copy beside the original."""
    lora = nn.Module()
    lora.base_layer, lora.lora_B = gpt2.lm_head, nn.Linear(8, 101, bias=False)
    gpt2.lm_head = lora
    assert_tied(gpt2)
    saved = nn.Module()
    saved.original_module, saved.modules_to_save = lora.base_layer, copy.deepcopy(lora.base_layer)
    gpt2.lm_head = saved
    with pytest.raises(NotTied, match=r"wte\.weight and lm_head\.modules_to_save\.weight are copied"):
        assert_tied(gpt2)


# -- optimizers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True])
def test_retie_leaves_each_parameter_once_in_the_optimizer(named):
    model = Plain()
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach().clone())
    kept, dropped = model.wte.weight, model.lm_head.weight
    model.norm = nn.LayerNorm(3)
    optimizer = torch.optim.AdamW(model.named_parameters() if named else model.parameters())
    sum(parameter.sum() for parameter in model.parameters()).backward()
    before = optimizer.param_groups[0]["params"][:]
    optimizer.state[kept]["mine"] = state = torch.ones(1)
    optimizer.state[dropped]["its"] = torch.ones(1)
    optimizer.param_groups[0]["params"].append(kept)
    if named:
        optimizer.param_groups[0]["param_names"].append("again")
    retie(model, optimizer=optimizer)
    after = optimizer.param_groups[0]["params"]
    assert [id(tensor) for tensor in after] == [id(tensor) for tensor in before if tensor is not dropped]
    assert dropped not in optimizer.state
    assert optimizer.state[kept]["mine"] is state
    if named:
        assert optimizer.param_groups[0]["param_names"] == ["wte.weight", "norm.weight", "norm.bias"]
    del optimizer.state[kept]
    optimizer.step()
    assert [finding for finding in check_optimizer(model, optimizer) if finding.problem] == []


def test_a_kept_parameter_that_the_optimizer_lacks_takes_the_place_of_the_dropped():
    model = Plain(tie=False)
    other = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([{"params": [other]}, {"params": [model.lm_head.weight]}], lr=0.1)
    retie(model, keep="wte.weight", optimizer=optimizer)
    assert optimizer.param_groups[0]["params"] == [other]
    assert optimizer.param_groups[1]["params"][0] is model.wte.weight
    assert len(optimizer.param_groups[1]["params"]) == 1


def test_a_group_left_empty_can_step():
    model = Plain(tie=False)
    optimizer = torch.optim.AdamW([{"params": [model.wte.weight]}, {"params": [model.lm_head.weight]}])
    retie(model, keep="wte.weight", optimizer=optimizer)
    model(torch.tensor([1])).sum().backward()
    optimizer.step()
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 0]


def codes(findings):
    return [(finding.code, finding.names) for finding in findings if finding.problem]


def test_a_sound_optimizer_has_no_problem_and_its_decay_named(gpt2):
    (finding,) = check_optimizer(gpt2, torch.optim.AdamW(gpt2.parameters(), weight_decay=0.1))
    assert not finding.problem
    assert finding.code == "tied-decay"
    assert finding.message == f"{WTE} = {HEAD} is in group 0, with weight_decay 0.1"


def test_what_is_wrong_with_an_optimizer_is_named():
    model = Plain(tie=False)
    wte, head = model.wte.weight, model.lm_head.weight
    optimizer = torch.optim.SGD([{"params": [wte]}, {"params": [head]}], lr=0.1)
    assert check_optimizer(model, optimizer) == []
    optimizer.param_groups[0]["params"].append(wte)
    assert codes(check_optimizer(model, optimizer)) == [("listed-twice", ("wte.weight",))]
    optimizer.param_groups[0]["params"][:] = [wte, head]
    (finding,) = check_optimizer(model, optimizer)
    assert (finding.code, finding.names) == ("in-two-groups", ("lm_head.weight",))
    assert "groups 0 and 1" in finding.message
    optimizer.param_groups[0]["params"][:] = []
    assert codes(check_optimizer(model, optimizer)) == [("not-in-optimizer", ("wte.weight",))]
    wte.requires_grad_(False)
    assert check_optimizer(model, optimizer) == []


def test_two_parameters_on_one_memory_and_strangers():
    model = Plain()
    model.lm_head.weight = nn.Parameter(model.wte.weight.data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (finding,) = check_optimizer(model, optimizer)
    assert (finding.code, finding.names) == ("aliased-parameters", ("wte.weight", "lm_head.weight"))
    half = torch.optim.SGD([model.wte.weight], lr=0.1)
    assert codes(check_optimizer(model, half)) == [("not-in-optimizer", ("lm_head.weight",))]
    retie(model)  # and forgets the optimizer
    (finding, _) = check_optimizer(model, optimizer)
    assert finding.code == "not-in-model"
    assert "group 0 holds 1 Parameters missing from the model ((7, 3))" in finding.message


# -- the door -------------------------------------------------------------------------------------


def test_importing_live_imports_no_torch():
    code = "import sys, tallystick.live; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_remedy_that_is_named_is_one_that_retie_takes(gpt2):
    model = gpt2
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone(), requires_grad=False)
    with pytest.raises(NotTied) as lost:
        assert_tied(model)
    call = str(lost.value).rpartition("tie them with ")[2]
    eval(call, {"tallystick": __import__("tallystick"), "model": model})
    assert_tied(model)
