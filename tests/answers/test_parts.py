"""The parts of a model against what torch finds by walking the modules that transformers builds."""

import pytest
from torch import nn

import tallystick
from checkpoints import write
from reference import build
from tallystick.answers.parts import cells, parts

# Every way in which the native families write a norm, a bias or a position.
CONFIGS = [
    {"model_type": "gpt2", "n_layer": 3, "n_embd": 24, "n_head": 2},
    {"model_type": "bloom", "n_layer": 2, "hidden_size": 24, "n_head": 2},
    {"model_type": "opt", "num_hidden_layers": 2, "hidden_size": 24, "ffn_dim": 40, "word_embed_proj_dim": 24},
    {"model_type": "gptj", "n_layer": 2, "n_embd": 32, "n_head": 2, "rotary_dim": 8},
    {"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2},
    {"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1},
    {"model_type": "gpt_oss", "num_hidden_layers": 2, "hidden_size": 32, "num_local_experts": 4},
]  # fmt: skip


def walked(model):
    """Elements of the biases, of the norms' scales and of their shifts, by the classes of the
    modules.
    """
    found = {"biases": 0, "norm_scales": 0, "norm_shifts": 0}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if type(module).__name__.endswith("Norm"):
                found["norm_shifts" if name == "bias" else "norm_scales"] += parameter.numel()
            elif name.endswith("bias"):
                found["biases"] += parameter.numel()
    return found


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config["model_type"])
def test_biases_and_norms_are_those_of_the_modules(config):
    model = build(config)
    truth = walked(model)
    for source in (config, model):
        held = {part.name: part.parameters for part in parts(tallystick.count(source))}
        assert {name: held.get(name, 0) for name in truth} == truth
        assert held["norms"] == truth["norm_scales"] + truth["norm_shifts"]


def test_gpt2s_parts_are_those_that_hand_calculations_forget():
    held = {part.name: part.parameters for part in parts(tallystick.count("gpt2"))}
    assert (held["positions"], held["biases"], held["norm_shifts"]) == (786_432, 27_648 + 9_216 + 46_080, 19_200)
    assert "head" not in held  # it is the token embedding


def test_a_part_names_its_tensors():
    held = {part.name: part.names for part in parts(tallystick.count("gpt2"))}
    assert held["norm_shifts"] == ("transformer.h.*.ln_1.bias", "transformer.h.*.ln_2.bias", "transformer.ln_f.bias")


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config["model_type"])
def test_cells_of_a_config_and_of_its_module_are_the_same(config):
    model = build(config)
    described = cells(tallystick.count(config))
    assert sum(described.values()) == sum(p.numel() for p in model.parameters())
    live = cells(tallystick.count(model))
    last = {tags: count for tags, count in live.items() if "last" in tags}
    assert last == {tags: count for tags, count in described.items() if "last" in tags}
    block = next(module for module in model.modules() if isinstance(module, nn.ModuleList))[-1]
    assert sum(last.values()) == sum(p.numel() for p in block.parameters())


def test_blocks_of_multi_token_prediction_are_no_last_blocks(tmp_path):
    shapes = {f"model.layers.{number}.mlp.up_proj.weight": (4, 2) for number in range(4)}
    write(tmp_path / "model.safetensors", {**shapes, "model.layers.3.eh_proj.weight": (2, 4)})
    counted = cells(tallystick.count(tmp_path))
    assert sum(count for tags, count in counted.items() if "mtp" in tags) == 8 + 8
    assert sum(count for tags, count in counted.items() if "last" in tags) == 8


def test_idle_experts_are_told_from_those_in_use():
    counted = cells(tallystick.count("mixtral-8x7b"))
    idle = sum(count for tags, count in counted.items() if "idle" in tags)
    assert idle == 32 * 6 * 3 * 4096 * 14336


def test_layers_without_number_take_no_time():
    assert sum(cells(tallystick.count("gpt2", n_layer=10**12)).values()) == 39_385_344 + 10**12 * 7_087_872
