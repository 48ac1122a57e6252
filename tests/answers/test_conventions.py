"""Each convention of counting against what torch and transformers count on the meta device."""

import pytest
import torch
import transformers
from torch import nn

import tallystick
from checkpoints import write
from reconciled import LLAMA2_C, names_of
from reference import build

# Small, untied, with positions, biases and norms: each part has a size of its own.
SMALL = {
    "model_type": "gpt2", "vocab_size": 1000, "n_positions": 40, "n_embd": 64, "n_layer": 2, "n_head": 2,
    "tie_word_embeddings": False,
}  # fmt: skip


def parameters_of(model, keep=lambda name: True, *, twice=False):
    return sum(p.numel() for name, p in model.named_parameters(remove_duplicate=not twice) if keep(name))


def is_norm(name):
    return ".ln_" in name


# A convention, and how to count so with the model itself.
COUNTED = {
    "positions": lambda model: parameters_of(model) - model.transformer.wpe.weight.numel(),
    "kaplan": lambda model: parameters_of(model.transformer.h) + parameters_of(model.transformer.ln_f),
    "exclude-embeddings": lambda model: model.num_parameters(exclude_embeddings=True),
    "head": lambda model: parameters_of(transformers.AutoModel.from_config(model.config)),
    "vocabulary": lambda model: parameters_of(model, lambda name: "wte" not in name and "lm_head" not in name),
    "biases": lambda model: parameters_of(model, lambda name: is_norm(name) or not name.endswith("bias")),
    "shifts": lambda model: parameters_of(model, lambda name: not (is_norm(name) and name.endswith("bias"))),
    "bias-free": lambda model: parameters_of(model, lambda name: not name.endswith("bias")),
    "norms": lambda model: parameters_of(model, lambda name: not is_norm(name)),
    "vectors": lambda model: sum(p.numel() for p in model.parameters() if p.dim() > 1),
    "block-matrices": lambda model: sum(p.numel() for p in model.transformer.h.parameters() if p.dim() > 1),
    "blocks": lambda model: parameters_of(model.transformer.h),
    "one-block": lambda model: parameters_of(model.transformer.h[0]),
    "one-block-matrices": lambda model: sum(p.numel() for p in model.transformer.h[0].parameters() if p.dim() > 1),
    "packed": lambda model: parameters_of(model)
    - sum(m.weight.numel() for m in model.transformer.h.modules() if isinstance(m, transformers.pytorch_utils.Conv1D)) // 2,
}  # fmt: skip


@pytest.mark.parametrize("convention", COUNTED)
def test_a_convention_counts_what_the_model_itself_gives(convention):
    with torch.device("meta"):
        model = build(SMALL)
        counted = COUNTED[convention](model)
    for source in (SMALL, model):
        answer = tallystick.reconcile(source, counted)
        assert answer.actual == parameters_of(model) != counted
        assert convention in [names_of(one)[0] for one in answer.explanations if len(one.steps) == 1]
        assert {one.value for one in answer.explanations} == {counted}


@pytest.mark.parametrize(
    ("tied", "count", "convention"), [(True, 100_096, "kaplan"), (False, 164_096, "exclude-embeddings")]
)
def test_exclude_embeddings_drops_a_tied_head_and_keeps_an_untied_one(tied, count, convention):
    config = {**SMALL, "tie_word_embeddings": tied}
    assert build(config).num_parameters(exclude_embeddings=True) == count
    (answer,) = tallystick.reconcile(config, count).explanations
    assert names_of(answer) == [convention]
    assert any("exclude_embeddings" in words for words in answer.steps[0].by)


def test_a_tied_head_counted_twice_is_what_a_state_dict_sums_to():
    config = {**SMALL, "tie_word_embeddings": True}
    summed = sum(tensor.numel() for tensor in build(config).state_dict().values())
    (answer,) = tallystick.reconcile(config, summed).explanations
    assert names_of(answer) == ["head-twice"]


def test_buffers_are_those_that_a_state_dict_holds():
    book = {"emb_dim": 16, "n_heads": 2, "n_layers": 3, "context_length": 8, "vocab_size": 50}
    model = build({"model_type": "book_gpt", **book, "drop_rate": 0.0})
    summed = sum(tensor.numel() for tensor in model.state_dict().values())
    assert names_of(tallystick.reconcile(book, summed).explanations[0]) == ["buffers"]


def test_active_experts_with_and_without_the_shared_ones():
    config = {
        "model_type": "deepseek_v3", "num_hidden_layers": 3, "first_k_dense_replace": 1, "hidden_size": 32,
        "intermediate_size": 48, "moe_intermediate_size": 24, "n_routed_experts": 16, "num_experts_per_tok": 2, "vocab_size": 99,
    }  # fmt: skip
    model = build(config)
    experts = sum(p.numel() for name, p in model.named_parameters() if ".mlp.experts." in name)
    shared = sum(p.numel() for name, p in model.named_parameters() if "shared_experts" in name)
    active = parameters_of(model) - experts * 14 // 16
    assert names_of(tallystick.reconcile(config, active).explanations[0]) == ["active"]
    assert names_of(tallystick.reconcile(config, active - shared).explanations[0]) == ["active-unshared"]


def test_frozen_parameters_are_left_out_where_only_the_trained_are_counted():
    model = nn.ModuleDict({"fc": nn.Linear(7, 11), "proj": nn.Linear(11, 5)})
    model["fc"].requires_grad_(False)
    (answer,) = tallystick.reconcile(model, sum(p.numel() for p in model.parameters() if p.requires_grad)).explanations
    assert names_of(answer) == ["trainable"]


def test_a_file_with_masks_holds_more_than_its_parameters(tmp_path):
    write(
        tmp_path / "model.safetensors",
        {"wte.weight": (10, 4), "h.0.attn.bias": (1, 1, 6, 6), "h.0.mlp.c_fc.weight": (4, 16)},
    )
    (answer,) = tallystick.reconcile(tmp_path, 40 + 36 + 64).explanations
    assert names_of(answer) == ["stored"]


def test_packed_bytes_hold_two_values_each(tmp_path):
    shapes = {"model.embed_tokens.weight": (10, 8), "model.layers.0.mlp.up_proj.weight": (64, 1)}
    write(tmp_path / "model.safetensors", shapes, dtypes={"model.layers.0.mlp.up_proj.weight": "U8"})
    assert names_of(tallystick.reconcile(tmp_path, 80 + 128).explanations[0]) == ["unpacked"]


def test_layers_for_multi_token_prediction_are_left_out(tmp_path):
    shapes = {f"model.layers.{number}.mlp.up_proj.weight": (8, 4) for number in range(4)}
    write(tmp_path / "model.safetensors", {**shapes, "model.layers.3.eh_proj.weight": (4, 8)})
    assert names_of(tallystick.reconcile(tmp_path, 3 * 32).explanations[0]) == ["mtp"]


def test_no_tensor_is_left_out_twice():
    model = build(SMALL)
    counted = parameters_of(model.transformer.h[1], lambda name: not name.startswith("ln_"))
    (answer,) = tallystick.reconcile(SMALL, counted).explanations
    norms, rest = answer.steps
    assert (norms.convention, rest.convention) == ("norms", "one-block")
    assert norms.parameters == -parameters_of(model, is_norm)
    assert rest.parameters == counted + parameters_of(model, is_norm) - parameters_of(model)


def test_two_ways_to_the_same_tensors_are_one_explanation():
    counted = parameters_of(build(SMALL).transformer.h, lambda name: ".ln_" not in name)
    assert [names_of(one) for one in tallystick.reconcile(SMALL, counted).explanations] == [["kaplan", "norms"]]


def test_an_empty_model_has_no_parameters_to_explain():
    answer = tallystick.reconcile(nn.Module(), "1M")
    assert (answer.actual, answer.explained) == (0, False)


def test_adapters_are_those_that_peft_makes():
    peft = pytest.importorskip("peft")
    with torch.device("meta"):
        model = build({**LLAMA2_C, "tie_word_embeddings": False, "num_hidden_layers": 2, "vocab_size": 1000})
        plain = parameters_of(model)
        adapted = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules="all-linear"))
    trainable, everything = adapted.get_nb_trainable_parameters()
    config = {**LLAMA2_C, "tie_word_embeddings": False, "num_hidden_layers": 2, "vocab_size": 1000}
    assert plain < everything
    assert names_of(tallystick.reconcile(config, everything).explanations[0]) == ["adapters-16-all-linear"]
    assert trainable == everything - plain
