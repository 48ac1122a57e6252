"""Why two live models or checkpoints differ: surgeries by real libraries, in the right words."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import tallystick
from checkpoints import write
from compared_models import LAYERS, LLAMA, POSITIONS, SMALL, VOCABULARY, D
from reference import build
from tallystick import BadInput

BLOCK = 12 * D * D + 13 * D  # GPT-2's: c_attn, two c_proj and c_fc with their biases, and two norms


def gpt2(**more: object) -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(**{**SMALL, "bos_token_id": 0, "eos_token_id": 0, **more}))


def llama_like(model_type: str, **more: object) -> nn.Module:
    return build({"model_type": model_type, "pad_token_id": None, **LLAMA, **more})


def elements(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def explained(a, b) -> dict[str, int]:
    """The kinds of the causes and what they add, after asking that they sum to the gap of what
    torch counts.
    """
    answer = tallystick.compare(a, b)
    assert sum(cause.parameters for cause in answer.causes) == answer.gap == answer.total_b - answer.total_a
    for model, total in ((a, answer.total_a), (b, answer.total_b)):
        assert not isinstance(model, nn.Module) or elements(model) == total
    kinds: dict[str, int] = {}
    for cause in answer.causes:
        kinds[cause.cause] = kinds.get(cause.cause, 0) + cause.parameters
    return kinds


# -- one model, three forms -----------------------------------------------------------------------


def test_a_config_its_checkpoint_and_its_live_module_are_the_same(tmp_path):
    model = gpt2()
    model.save_pretrained(tmp_path)
    config = {"model_type": "gpt2", **SMALL}
    for a, b in ((config, tmp_path), (tmp_path, model), (model, config)):
        assert explained(a, b) == {}
    (tmp_path / "config.json").unlink()
    for a, b in ((config, tmp_path), (tmp_path, model)):
        assert explained(a, b) == {}
    assert explained(model, gpt2().to(torch.bfloat16)) == {"dtype": 0}


def test_a_vocabulary_resized_in_a_checkpoint_is_the_key_of_its_config(tmp_path):
    gpt2(vocab_size=128).save_pretrained(tmp_path)
    [cause] = tallystick.compare({"model_type": "gpt2", **SMALL}, tmp_path).causes
    assert (cause.keys, cause.parameters) == (("vocab_size",), 31 * D)


def test_a_checkpoint_that_is_not_what_its_config_says_is_explained_by_its_tensors(tmp_path):
    model = gpt2()
    model.save_pretrained(tmp_path)
    state = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    state["transformer.frobnicator"] = state.pop("transformer.ln_f.bias")  # as many parameters, of which one is strange
    save_file(state, tmp_path / "model.safetensors")
    assert explained({"model_type": "gpt2", **SMALL}, tmp_path) == {"norms": -D, "other": D}


# -- surgeries by real libraries ------------------------------------------------------------------


def test_a_replaced_head():
    model = gpt2()
    model.lm_head = nn.Sequential(nn.Linear(D, VOCABULARY, bias=False))
    answer = tallystick.compare(gpt2(), model)
    assert [cause.what for cause in answer.causes] == ["lm_head.0.weight is no longer tied to transformer.wte.weight"]
    assert explained(gpt2(), model) == {"tie-lost": VOCABULARY * D}
    assert explained(model, gpt2()) == {"tie-gained": -VOCABULARY * D}


def test_a_head_untied_under_its_own_name():
    model = gpt2()
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    assert explained({"model_type": "gpt2", **SMALL}, model) == {"tie-lost": VOCABULARY * D}


def test_token_embeddings_resized_with_padding():
    model = gpt2(tie_word_embeddings=False)
    model.resize_token_embeddings(100, pad_to_multiple_of=64)
    before = gpt2(tie_word_embeddings=False)
    assert explained(before, model) == {"vocabulary": 2 * 31 * D}
    del before.config, model.config  # by the tensors alone, the same
    [cause] = tallystick.compare(before, model).causes
    assert cause.what == "vocabulary 97 → 128 (padded to a multiple of 64)"
    assert cause.parameters == 2 * 31 * D


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_lora_and_the_copies_of_modules_to_save():
    peft = pytest.importorskip("peft")
    lora = peft.LoraConfig(r=4, target_modules=["c_attn"], modules_to_save=["lm_head"], fan_in_fan_out=True)
    answer = tallystick.compare(gpt2(), peft.get_peft_model(gpt2(), lora))
    assert [(cause.cause, cause.parameters) for cause in answer.causes] == [
        ("adapters", VOCABULARY * D),
        ("adapters", LAYERS * 4 * (D + 3 * D)),
    ]
    copies, matrices = answer.causes
    assert "modules_to_save" in copies.what
    assert "LoRA" in matrices.what
    assert len(matrices.names) == 2
    merged = peft.get_peft_model(gpt2(), peft.LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True))
    assert explained(gpt2(), merged.merge_and_unload()) == {}


def test_layers_dropped_and_merged():
    cut = gpt2()
    cut.transformer.h = cut.transformer.h[:-2]
    assert explained(gpt2(), cut) == {"layers": -2 * BLOCK}
    assert explained(cut, gpt2()) == {"layers": 2 * BLOCK}
    assert tallystick.compare(gpt2(), cut).causes[0].what == "layers 4 → 2"
    every_third = gpt2()
    every_third.transformer.h = nn.ModuleList(every_third.transformer.h[layer] for layer in (0, 3))
    assert explained(gpt2(), every_third) == {"layers": -2 * BLOCK}


def nanogpt(**more: object) -> nn.Module:
    sizes = {"vocab_size": VOCABULARY, "block_size": POSITIONS, "n_embd": D, "n_layer": LAYERS, "n_head": 4}
    return build({"model_type": "nanogpt", **sizes, **more})


def test_a_nanogpt_style_module_against_the_hugging_face_one():
    answer = tallystick.compare(gpt2(), nanogpt())
    assert explained(gpt2(), nanogpt()) == {}
    assert answer.aligned[-1] == "12 tensors transposed"  # c_attn, c_fc and the MLP's c_proj; the other is square
    assert explained(gpt2(), nanogpt(vocab_size=128, block_size=64, bias=False)) == {
        "vocabulary": 31 * D,
        "positions": 32 * D,
        "biases": -LAYERS * 9 * D,  # 3D, D, 4D and D
        "norms": -(2 * LAYERS + 1) * D,
    }


def test_all_that_scales_with_the_width_is_one_cause():
    wider = nanogpt(n_embd=2 * D)
    assert explained(gpt2(), wider) == {"width": elements(wider) - elements(gpt2())}
    [cause] = tallystick.compare(gpt2(), wider).causes
    assert cause.what == "width 48 → 96"


def test_an_mlp_width_is_the_same_whether_gate_and_up_are_fused():
    wider = llama_like("phi3", intermediate_size=80)
    assert explained(llama_like("llama"), wider) == {"mlp-width": 2 * 3 * D * 8, "projections-fused": 0}
    assert tallystick.compare(llama_like("llama"), wider).causes[0].what == "MLP width 72 → 80"


def test_fused_and_split_projections_are_the_same():
    sizes = {"vocab_size": VOCABULARY, "context_length": POSITIONS, "emb_dim": D, "n_layers": LAYERS, "n_heads": 4}
    book = build({"model_type": "book_gpt", **sizes, "drop_rate": 0.1, "qkv_bias": True, "tie_word_embeddings": True})
    assert explained(gpt2(), book) == {"projections-fused": 0}
    assert explained(book, gpt2()) == {"projections-fused": 0}
    assert not tallystick.compare(gpt2(), book).different
    unbiased = build({"model_type": "book_gpt", **sizes, "drop_rate": 0.1})
    assert explained(gpt2(), unbiased) == {
        "tie-lost": VOCABULARY * D,
        "biases": -LAYERS * 3 * D,
        "projections-fused": 0,
    }
    assert explained(llama_like("llama"), llama_like("phi3")) == {"projections-fused": 0}


def test_grouped_query_heads_fused_or_not():
    fewer = -2 * LLAMA["num_hidden_layers"] * D * D // 2  # half the keys, half the values
    book = {"vocab_size": 100, "context_length": 8, "emb_dim": D, "n_layers": 2, "n_heads": 4, "hidden_dim": 72}
    grouped = build({"model_type": "book_llama", **book, "n_kv_groups": 2})
    assert explained(llama_like("llama"), grouped) == {"kv-heads": fewer}
    fused = llama_like("phi3", num_key_value_heads=2)
    assert explained(llama_like("llama"), fused) == {"kv-heads": fewer, "projections-fused": 0}  # gate and up


def test_gated_against_plain_mlp_and_learned_positions_against_rotary():
    kinds = explained(llama_like("phi", num_attention_heads=4, partial_rotary_factor=0.5), llama_like("llama"))
    assert kinds["mlp-gate"] == 2 * D * 72
    plain = explained(gpt2(n_inner=72), llama_like("llama", num_hidden_layers=LAYERS, vocab_size=VOCABULARY))
    assert plain["positions"] == -POSITIONS * D
    assert plain["mlp-gate"] == LAYERS * D * 72
    assert plain["tie-lost"] == VOCABULARY * D


def test_experts_fused_or_one_by_one(tmp_path):
    fused, dense = llama_like("mixtral", num_local_experts=4, num_key_value_heads=4), llama_like("llama")
    assert explained(fused, dense) == {"experts": -2 * (4 * 3 * D * 72 + 4 * D - 3 * D * 72)}  # and their routers
    more = llama_like("mixtral", num_local_experts=6, num_key_value_heads=4)
    del fused.config, more.config
    assert explained(fused, more) == {"experts": 2 * 2 * (3 * D * 72 + D)}
    split = {}
    for name, tensor in fused.state_dict().items():
        if name.endswith("gate_up_proj"):
            for expert in range(4):
                split |= {f"{name[:-12]}{expert}.{w}.weight": (72, D) for w in ("w1", "w3")}
        elif name.endswith("experts.down_proj"):
            split |= {f"{name[:-9]}{expert}.w2.weight": (D, 72) for expert in range(4)}
        else:
            split[name] = tuple(tensor.shape)
    write(tmp_path / "model.safetensors", split)
    assert explained(fused, tmp_path) == {"projections-fused": 0}


def test_a_dequantised_copy(tmp_path):
    """Half a byte for each value, as bitsandbytes packs them, with the scales next to them."""
    state = {name: tensor for name, tensor in gpt2().state_dict().items() if name != "lm_head.weight"}
    packed, saved = {}, 0
    for name, tensor in state.items():
        if tensor.ndim == 2 and ".h." in name:
            packed[name] = torch.zeros(tensor.numel() // 2, 1, dtype=torch.uint8)
            packed[f"{name}.absmax"] = torch.zeros(tensor.numel() // 64)
            saved += tensor.numel() // 2
        else:
            packed[name] = tensor
    save_file(packed, tmp_path / "packed.safetensors")
    save_file(state, tmp_path / "whole.safetensors")
    answer = tallystick.compare(tmp_path / "packed.safetensors", tmp_path / "whole.safetensors")
    assert [(cause.cause, cause.parameters) for cause in answer.causes] == [("packed", saved), ("dtype", 0)]
    assert answer.causes[1].what == "dtype float32 and uint8 → float32"


def test_quantised_by_torchao_the_parameters_stay():
    quantization = pytest.importorskip("torchao.quantization")
    before = llama_like("llama").to_empty(device="cpu")
    after = llama_like("llama").to_empty(device="cpu")
    quantization.quantize_(after, quantization.Int8WeightOnlyConfig())
    assert not tallystick.compare(before, after).different


def test_buffers_counted_as_parameters(tmp_path):
    model = gpt2()
    for block in model.transformer.h:
        block.attn.register_parameter("tril", nn.Parameter(torch.ones(POSITIONS, POSITIONS)))
    assert explained(gpt2(), model) == {"buffers": LAYERS * POSITIONS * POSITIONS}
    frozen = gpt2()
    for block in frozen.transformer.h:
        block.attn.register_buffer("tril", torch.ones(POSITIONS, POSITIONS))
    assert explained(frozen, model) == {"buffers": LAYERS * POSITIONS * POSITIONS}
    assert explained(gpt2(), frozen) == {}


def test_wrapped_models_are_their_own(tmp_path):
    state = {f"module._orig_mod.{name}": tensor for name, tensor in gpt2().state_dict().items()}
    del state["module._orig_mod.lm_head.weight"]
    save_file(state, tmp_path / "model.safetensors")
    assert explained(gpt2(), tmp_path) == {}
    answer = tallystick.compare(gpt2(), tmp_path)
    assert "prefixes and wrappers" in answer.aligned[0]
    assert explained(nn.DataParallel(torch.compile(gpt2())), tmp_path) == {}
    base = gpt2().transformer  # the published file's names, without `transformer.`
    assert explained(gpt2(), base) == {}


# -- what cannot be explained is not forced -------------------------------------------------------


def test_what_nobody_has_a_word_for_is_said_with_its_names():
    model = gpt2()
    model.frobnicator = nn.Bilinear(3, 4, 5)
    [cause] = tallystick.compare(gpt2(), model).causes
    assert (cause.cause, cause.parameters) == ("other", 5 * 3 * 4 + 5)
    assert cause.names == ("frobnicator.weight", "frobnicator.bias")


def image_model() -> nn.Module:
    return nn.ModuleDict({"conv1": nn.Conv2d(3, 8, 3), "bn1": nn.BatchNorm2d(8), "fc": nn.Linear(8, 10)})


@pytest.mark.parametrize("other", [image_model, lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))])
def test_two_models_with_nothing_in_common_are_said_to_be_so(other):
    with pytest.raises(BadInput, match="have no tensors in common"):
        tallystick.compare(gpt2(), other())


def test_two_empty_models_are_equal():
    assert tallystick.compare(nn.Sequential(), nn.Sequential()).causes == ()
