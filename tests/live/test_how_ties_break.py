"""How ties break, row by row: made by the real library, named by their code, and mended as the
message says.

    load_state_dict(assign=True)            test_assigning_a_tied_state_dict_…, test_assigning_a_cloned_state_dict_…
    meta device, to_empty()                 test_to_empty_…
    accelerate.init_empty_weights           test_init_empty_weights_…
    .to("meta"); a move to XLA              test_the_meta_device_…; test_a_move_that_copies_…, by the switch of torch that
                                            has any move go as one to XLA does, for which there is no device here
    nn.Parameter(embedding.weight.data)     test_a_parameter_made_of_the_data_…
    a copy instead of a tie                 test_a_copy_where_a_tie_was_meant_…
    embedding or head replaced              test_what_is_replaced_after_tying_…, test_a_head_inside_a_sequential_…
    both names in the file, flag true       on_disk: test_a_head_trained_apart_…
    no head in the file, flag false         on_disk: test_a_flag_that_says_false_…
    a save drops an untied head             on_disk: test_a_save_that_drops_…
    _tied_weights_keys, list or dictionary  on_disk: test_the_list_of_older_…, test_a_dictionary_that_names_…
    "Some tensors share memory"             on_disk: test_shared_memory_is_refused_…
    a duplicate head in the file            on_disk: test_a_duplicate_head_is_offloaded_…
    resize_token_embeddings                 test_resizing_gives_up_…
    FSDP2, FSDP1                            on_devices: test_fsdp2_…, test_fsdp1_…
    ZeRO-3                                  on_devices: test_empty_parameters_…, made as DeepSpeed, which needs a GPU, leaves them
    pipeline parallel                       on_devices: test_two_stages_of_a_pipeline_…
    device_map                              on_devices: test_a_device_map_…
    PEFT modules_to_save, merge             test_modules_to_save_…, on_disk: test_a_merged_adapter_…
    quantisation                            test_a_quantised_head_…
    functional_call                         test_a_call_with_two_values_…
    GGUF                                    test_gguf.py: test_a_head_that_is_not_stored_…, test_a_head_stored_beside_…
    a Parameter listed twice                on_disk: test_a_parameter_listed_twice_…, test_a_parameter_in_two_groups
    weight decay                            on_disk: test_the_group_of_the_tied_matrix_…
    vocabulary padding                      on_disk: test_rows_that_pad_…, test_tokens_without_a_row_…

What keeps a tie raises no alarm in test_live.py; what the libraries say themselves, of some fifty
operations: test_survive.py.
"""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call
from transformers import LlamaConfig, LlamaForCausalLM

from broken_ties import HEAD, IDS, SIZE, TOTAL, WTE, followed, gpt2, head_replaced, logits, mended, named, step
from tallystick import BadInput, assert_kept, assert_tied, check_optimizer, count, retie, ties, watch
from tallystick.live import NotTied, TieLost
from tallystick.presets import PRESETS

# -- load_state_dict(assign=True) -----------------------------------------------------------------


def test_assigning_a_tied_state_dict_steps_one_memory_twice():
    model = gpt2()
    with pytest.raises(TieLost, match=f"{WTE} and {HEAD} were tied and are aliased"), watch(model):
        model.load_state_dict(model.state_dict(), assign=True)
    wte, head = model.transformer.wte.weight, model.lm_head.weight
    assert wte is not head
    assert wte.data_ptr() == head.data_ptr()
    named(model, "aliased-parameters", "aliased")

    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    (found,) = check_optimizer(model, optimizer)
    assert (found.code, found.names) == ("aliased-parameters", (WTE, HEAD))
    before = wte.detach().clone()
    wte.grad = head.grad = torch.ones_like(wte)
    optimizer.step()
    torch.testing.assert_close(wte.detach(), before - 2)
    mended(model, found.remedy, optimizer=optimizer)
    assert [finding for finding in check_optimizer(model, optimizer) if finding.problem] == []
    before, wte.grad = wte.detach().clone(), torch.ones_like(wte)
    optimizer.step()
    torch.testing.assert_close(wte.detach(), before - 1)


def test_assigning_a_cloned_state_dict_unties():
    model = gpt2()
    expected = logits(model)
    with pytest.raises(TieLost, match="were tied and are copied"), watch(model):
        model.load_state_dict({name: tensor.clone() for name, tensor in model.state_dict().items()}, assign=True)
    assert model.transformer.wte.weight.data_ptr() != model.lm_head.weight.data_ptr()
    trained = copy.deepcopy(model)
    mended(model, named(model, "copied-parameters", "copied"))
    assert torch.equal(logits(model), expected)

    step(trained, torch.optim.SGD(trained.parameters(), lr=1.0))
    assert not torch.equal(trained.transformer.wte.weight, trained.lm_head.weight)
    mended(trained, named(trained, "untied-head", "untied"))


# -- built without values, moved ------------------------------------------------------------------


def test_to_empty_gives_each_name_storage_of_its_own():
    sound = gpt2()
    with torch.device("meta"):
        model = gpt2()
    with pytest.raises(TieLost, match=r"were tied and are (untied|copied)"), watch(model):
        model.to_empty(device="cpu")
    assert model.transformer.wte.weight.data_ptr() != model.lm_head.weight.data_ptr()
    nn.init.normal_(model.lm_head.weight)  # or whatever memory held before
    state = sound.state_dict()
    del state[HEAD]  # as a tied checkpoint is stored
    model.load_state_dict(state, strict=False)
    assert not torch.allclose(logits(model), logits(sound))
    mended(model, named(model, "untied-head", "untied"))
    assert torch.equal(logits(model), logits(sound))


def test_init_empty_weights_wraps_each_name_again():
    from accelerate import init_empty_weights
    from accelerate.utils import compute_module_sizes

    with init_empty_weights():
        model = gpt2()
    assert model.transformer.wte.weight is not model.lm_head.weight
    assert compute_module_sizes(model)[""] == 4 * (TOTAL + SIZE)
    mended(model, named(model, "aliased-parameters", "aliased"))
    assert compute_module_sizes(model)[""] == 4 * TOTAL


def test_a_move_that_copies_each_name_unties():
    """As to an XLA device, for which torch cannot change a Parameter in place."""
    model, expected = gpt2(), logits(gpt2())
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with pytest.raises(TieLost, match="were tied and are copied"), watch(model):
            model.to(torch.float64)
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert model.transformer.wte.weight.data_ptr() != model.lm_head.weight.data_ptr()
    mended(model, named(model, "copied-parameters", "copied"))
    torch.testing.assert_close(logits(model).float(), expected)


def test_the_meta_device_takes_each_name_apart():
    model = gpt2()
    with pytest.raises(TieLost, match="were tied and are unknown"), watch(model):
        model.to("meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == TOTAL + SIZE
    assert model.transformer.wte.weight.data_ptr() == model.lm_head.weight.data_ptr() == 0  # which tells nothing
    mended(model, named(model, "untied-head", "unknown"))


# -- surgery --------------------------------------------------------------------------------------


def test_a_parameter_made_of_the_data_is_counted_and_trained_twice():
    model = gpt2()
    with pytest.raises(TieLost, match="were tied and are aliased"), watch(model):
        model.lm_head.weight = nn.Parameter(model.transformer.wte.weight.data)
    assert sum(parameter.numel() for parameter in model.parameters()) == TOTAL + SIZE
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    wte, head = model.transformer.wte.weight, model.lm_head.weight
    assert not torch.equal(wte.grad, head.grad)
    assert {wte, head} <= optimizer.state.keys()
    alone = [wte.grad, head.grad]

    mended(
        model, named(model, "aliased-parameters", "aliased").replace(")", ", optimizer=optimizer)"), optimizer=optimizer
    )
    assert (wte in optimizer.state, head in optimizer.state) == (True, False)
    fresh = gpt2()
    fresh(IDS, labels=IDS).loss.backward()
    torch.testing.assert_close(fresh.lm_head.weight.grad, sum(alone))


def test_a_copy_where_a_tie_was_meant_takes_the_memory_twice():
    model = gpt2()
    model.lm_head = copy.deepcopy(model.lm_head)
    assert ties(model).groups[0].wasted_bytes == 4 * SIZE
    mended(model, named(model, "copied-parameters", "copied"))
    assert ties(model).groups[0].wasted_bytes == 0

    config = LlamaConfig(**{key: value for key, value in PRESETS["llama-3.2-1b"].items() if key != "model_type"})
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
        model.lm_head = copy.deepcopy(model.lm_head)
    assert count(model).total == 1_498_482_688
    retie(model)
    assert count(model).total == 1_235_814_400


def input_set(model):
    model.set_input_embeddings(nn.Embedding(101, 8))


def output_set(model):
    model.set_output_embeddings(nn.Linear(8, 101, bias=False))


@pytest.mark.parametrize("operation", [input_set, output_set, head_replaced])
def test_what_is_replaced_after_tying_leaves_the_other_alone(operation):
    model = gpt2()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TieLost, match="were tied and are untied"), watch(model):
        operation(model)
    assert model.config.tie_word_embeddings is True
    new = WTE if operation is input_set else HEAD
    before = model.get_parameter(new).detach().clone()
    step(model, optimizer)
    assert torch.equal(model.get_parameter(new), before)  # the optimizer has never heard of it
    call = named(model, "untied-head", "untied")
    assert [finding.names for finding in check_optimizer(model, optimizer)] == [(new,)]
    mended(model, call.replace(")", ", optimizer=optimizer)"), optimizer=optimizer)
    step(model, optimizer)
    assert not torch.equal(model.get_parameter(new), before)


def test_a_head_inside_a_sequential_is_found():
    model = gpt2()
    with pytest.raises(TieLost, match=r"now as transformer\.wte\.weight and lm_head\.1\.weight"), watch(model):
        model.lm_head = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 101, bias=False))
    mended(model, named(model, "untied-head", "untied", (WTE, "lm_head.1.weight")))
    assert model.lm_head[1].weight is model.transformer.wte.weight


def test_resizing_gives_up_a_head_that_was_trained_apart():
    """transformers keeps the old rows of a head that its config does not tie, and ties that of one
    that it does.
    """
    model = gpt2()
    head_replaced(model)
    trained = model.lm_head.weight.detach().clone()
    named(model, "untied-head", "untied")
    lost = copy.deepcopy(model)
    lost.resize_token_embeddings(110)
    assert not torch.equal(lost.lm_head.weight[:101], trained)

    with pytest.raises(BadInput, match=f'keep="{HEAD}"'):
        retie(model)
    retie(model, keep=HEAD)
    with watch(model):
        model.resize_token_embeddings(110)
    assert torch.equal(model.lm_head.weight[:101], trained)
    assert ties(model).verdict == "consistent"


# -- adapters, quantisation, other calls ----------------------------------------------------------


def test_modules_to_save_trains_a_head_of_its_own():
    from peft import LoraConfig, get_peft_model

    def lora(**more):
        settings = {"target_modules": ["c_attn"], "fan_in_fan_out": True, "r": 2, "modules_to_save": ["lm_head"]}
        return get_peft_model(gpt2(), LoraConfig(**settings, **more))

    def train(model):
        step(model, torch.optim.SGD([tensor for tensor in model.parameters() if tensor.requires_grad], lr=1.0))

    base = gpt2()
    model = lora()
    first, second = f"base_model.model.{WTE}", "base_model.model.lm_head.modules_to_save.default.weight"
    assert model.config.tie_word_embeddings is True
    named(model, "copied-parameters", "copied", (first, second))
    train(model)
    assert not torch.equal(model.get_parameter(first), model.get_parameter(second))
    named(model, "untied-head", "untied", (first, second))
    merged = model.merge_and_unload()
    with pytest.raises(TieLost, match=f"{WTE} and {HEAD} were tied and are untied"):
        assert_kept(base, merged)

    model = lora(ensure_weight_tying=True)
    train(model)
    assert ties(model).problems == ()
    merged = model.merge_and_unload()
    assert_kept(base, merged)
    assert merged.lm_head.weight is merged.transformer.wte.weight


def test_a_quantised_head_is_no_longer_its_embedding():
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    def quantised(**more):
        torch.manual_seed(0)
        sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
        model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2, tie_word_embeddings=True)).eval()
        quantize_(model, Int8WeightOnlyConfig(version=2), **more)
        return model

    model = quantised()
    assert type(model.lm_head.weight) is not type(model.model.embed_tokens.weight) is nn.Parameter
    call = named(model, "untied-head", "unknown", ("model.embed_tokens.weight", HEAD))
    followed(call, model)
    assert_tied(model)
    headless = quantised(filter_fn=lambda module, name: isinstance(module, nn.Linear) and name != "lm_head")
    assert torch.equal(logits(model), logits(headless))


def test_a_call_with_two_values_for_one_tensor():
    model = gpt2()
    model.register_forward_pre_hook(lambda inside, _: assert_tied(inside))
    values = {name: torch.randn(101, 8) for name in ties(model).groups[0].names}
    with pytest.raises(ValueError, match=r"got multiple values for keys .* which are tied"):
        functional_call(model, values, (IDS,))
    with pytest.raises(NotTied, match=f"{WTE} and {HEAD} are untied"):  # as torch suggests
        functional_call(model, values, (IDS,), tie_weights=False)
    called = functional_call(model, {WTE: values[WTE]}, (IDS,)).logits
    model.transformer.wte.weight.data.copy_(values[WTE])
    assert torch.equal(called, model(IDS).logits)
