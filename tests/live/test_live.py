"""Live ties through the real operations: kept, lost, named and watched."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from live_models import TINY, Plain, Wrapper, gpt2, one_line, replaced
from tallystick.live import NotTied, TieLost, assert_kept, assert_tied, watch

__all__ = ["gpt2"]  # a fixture


# -- operations (how ties break is in test_how_ties_break.py) -------------------------------------


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


# -- the door -------------------------------------------------------------------------------------


def test_importing_live_imports_no_torch():
    code = "import sys, tallystick.live; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
