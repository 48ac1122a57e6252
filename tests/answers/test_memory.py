"""What training and serving take is what real modules and real optimizers hold, to the byte."""

from __future__ import annotations

import json
import re
from typing import Any

import peft
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import configs
import tallystick
from autograd_memory import most_allocated
from checkpoints import write
from measurements import measured
from states import OPTIMIZERS, held, real, state_of, stepped
from tallystick import BadInput
from tallystick.cli.main import main

drawn = settings(
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


def has_no_empty_tensor(values: dict[str, Any]) -> bool:
    """Whether an optimizer takes it: of no shared expert, transformers builds matrices without a
    row.
    """
    return all(all(entry.shape) for entry in tallystick.count(values).rolled)


DRAWN = st.sampled_from(sorted(configs.CONFIGS)).flatmap(configs.CONFIGS.get).filter(has_no_empty_tensor)
LLAMA = {
    "model_type": "llama", "vocab_size": 2000, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True,
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "vocab_size": 2000, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256,
    "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
}  # fmt: skip
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2}


def told(source: Any, **options: Any) -> dict[str, Any]:
    return tallystick.memory(source, mode="training", sequence=1, **options).to_dict()


# -- model states ---------------------------------------------------------------------------------


@drawn
@given(DRAWN, st.sampled_from(sorted(OPTIMIZERS)), st.sampled_from(["float32", "bfloat16"]))
def test_weights_gradients_and_state_are_those_of_a_real_step(values, name, dtype):
    weights, gradients, state = measured("states:of_a_step", values, name, dtype)
    answer = told(values, optimizer=name, dtype=dtype)
    buffers = sum(line["bytes"] for line in answer["lines"] if line["what"] == "buffers")
    assert answer["weights_bytes"] - buffers == weights
    assert answer["gradients_bytes"] == gradients
    assert answer["optimizer_bytes"] == state


def test_the_state_of_an_8_bit_optimizer():
    from torchao.optim import AdamW8bit

    model = real(LLAMA)
    with torch.compiler.set_stance("force_eager"):
        optimizer = stepped(model, AdamW8bit)
    assert told(LLAMA, optimizer="adam8bit")["optimizer_bytes"] == state_of(optimizer)


def test_the_state_of_muon_beside_adamw():
    model = real(LLAMA)
    hidden = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n and "lm_head" not in n]
    rest = [p for p in model.parameters() if all(p is not other for other in hidden)]
    state = 0
    for make, parameters in ((torch.optim.Muon, hidden), (torch.optim.AdamW, rest)):
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        optimizer = make(parameters)
        optimizer.step()
        state += state_of(optimizer)
    assert told(LLAMA, optimizer="muon")["optimizer_bytes"] == state


def test_master_weights_take_sixteen_bytes_of_a_parameter():
    """Rajbhandari et al. 2020, ZeRO, section 3.1: 2 + 2 + 12."""
    answer = told("gpt2", precision="master")
    parameters, steps = 124_439_808, 148 * 4
    assert answer["weights_bytes"] == answer["gradients_bytes"] == 2 * parameters
    assert answer["optimizer_bytes"] == 12 * parameters + steps


def test_autocast_keeps_everything_in_float32():
    answer = told("llama-3-8b", precision="mixed")
    assert answer["weights_bytes"] == answer["gradients_bytes"] == 4 * 8_030_261_248
    assert answer["optimizer_bytes"] == 8 * 8_030_261_248 + 291 * 4
    assert any(line["what"] == "logits in bfloat16" for line in answer["lines"])


def test_a_live_module_counts_what_is_frozen_and_what_is_aliased():
    model = torch.nn.ModuleDict({"wte": torch.nn.Embedding(7, 3), "lm_head": torch.nn.Linear(3, 7, bias=False)})
    model["lm_head"].weight = torch.nn.Parameter(model["wte"].weight.data)  # values shared, gradients not
    answer = told(model)
    assert answer["weights_bytes"] == 7 * 3 * 4
    assert answer["gradients_bytes"] == 2 * 7 * 3 * 4
    assert answer["backward_buffers_bytes"] == 0  # they are not added: each Parameter has its own
    assert answer["optimizer_bytes"] == state_of(stepped(model, torch.optim.AdamW))
    model["wte"].weight.requires_grad_(False)
    model["lm_head"].weight.grad = None
    assert told(model)["gradients_bytes"] == 7 * 3 * 4


# -- adapters -------------------------------------------------------------------------------------


@drawn
@given(
    DRAWN.filter(lambda values: not any("expert" in key or key.startswith("moe_") for key in values)).filter(
        lambda values: (
            values["model_type"] != "phi4_multimodal"
        )  # in whose towers PEFT adapts fewer layers than we count
    ),
    st.integers(1, 5),
    st.sampled_from(["float32", "bfloat16"]),
)
def test_adapters_are_those_of_peft(values, rank, dtype):
    values = {**values, "vocab_size": 50}
    found = measured("states:of_adapters", values, rank, dtype)
    assume(found)
    base, trained, state = found
    answer = told(values, lora=rank, dtype=dtype)
    weights = {line["what"].partition(" in ")[0]: line["bytes"] for line in answer["lines"]}
    assert weights["weights"] == base
    assert weights["LoRA adapters"] == answer["gradients_bytes"] == trained
    assert answer["optimizer_bytes"] == state


def test_neither_routers_nor_fused_experts_are_linear_layers():
    values = {**MIXTRAL, "model_type": "gpt_oss", "head_dim": 16}
    model = peft.get_peft_model(real(values), peft.LoraConfig(r=2, target_modules="all-linear"))
    assert told(values, lora=2)["gradients_bytes"] == held(p for p in model.parameters() if p.requires_grad)
    assert any("fused experts" in note for note in told(MIXTRAL, lora=2)["notes"])
    assert not any("fused experts" in note for note in told(LLAMA, lora=2)["notes"])


def test_the_projections_of_a_scan_are_linear_layers_and_its_convolution_is_none():
    values = {**LLAMA, "model_type": "bamba", "mamba_n_heads": 4, "mamba_d_state": 6, "attn_layer_indices": [1]}
    model = peft.get_peft_model(real(values), peft.LoraConfig(r=2, target_modules="all-linear"))
    assert told(values, lora=2)["gradients_bytes"] == held(p for p in model.parameters() if p.requires_grad)


def test_adapters_beside_the_modules_that_are_named():
    model = peft.get_peft_model(real(LLAMA), peft.LoraConfig(r=3, target_modules=["q_proj", "down_proj"]))
    answer = told(LLAMA, lora=3, targets=["q_proj", "down_proj"])
    assert answer["gradients_bytes"] == held(p for p in model.parameters() if p.requires_grad)


def test_weights_packed_in_four_bits_are_trained_by_adapters_alone():
    with pytest.raises(BadInput, match="cannot be trained; use another dtype, or LoRA adapters"):
        told(LLAMA, dtype="int8")
    answer = told(LLAMA, dtype="nf4", lora=2)
    assert answer["gradients_bytes"] < answer["weights_bytes"]


# -- when all is there ----------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_the_end_of_a_backward_pass_is_as_full_as_torch_makes_it(tied):
    values = {**LLAMA, "tie_word_embeddings": tied}
    model, ids = real(values), torch.zeros((1, 1), dtype=torch.long)

    def run():
        model(ids, labels=ids).loss.backward()

    for _ in range(2):  # the first call makes what stays
        model.zero_grad()
        measured = most_allocated(run)
    answer = told(values)
    predicted = answer["gradients_bytes"] + answer["backward_buffers_bytes"]
    assert answer["backward_buffers_bytes"] == (2 * 2000 * 64 * 4 if tied else 0)
    # One token keeps a few kilobytes of activations, of which some remain.
    assert predicted <= measured < predicted + 0.02 * predicted


@pytest.mark.parametrize(
    ("name", "make", "least"),
    [
        ("adamw", lambda parameters: torch.optim.AdamW(parameters, foreach=True), 0.99),
        ("adamw-fused", lambda parameters: torch.optim.AdamW(parameters, fused=True), None),
        ("sgd", lambda parameters: torch.optim.SGD(parameters, foreach=True), None),
        ("sgd-momentum", lambda parameters: torch.optim.SGD(parameters, momentum=0.9, foreach=True), None),
        ("adafactor", torch.optim.Adafactor, 0.25),  # in bfloat16 by processor: 0.26, 0.3 and more
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_step_needs_as_much_as_torch_takes(name, make, least, dtype):
    model = real(LLAMA, getattr(torch, dtype))
    optimizer = stepped(model, make)
    measured = most_allocated(optimizer.step)
    predicted = told(LLAMA, optimizer=name, dtype=dtype)["step_buffers_bytes"]
    if least is None:
        assert predicted == 0
        assert measured < 1000
    else:
        assert least * predicted < measured < predicted + 1000


@pytest.mark.parametrize(
    ("values", "attention", "batch", "tokens", "fullest"),
    [
        (LLAMA, "flash", 2, 128, "start of backward"),
        (LLAMA, "eager", 2, 128, "start of backward"),
        (GPT2, "flash", 2, 128, "start of backward"),
        (GPT2, "eager", 2, 128, "start of backward"),
        (LLAMA, "flash", 1, 1, "end of backward"),
        (GPT2, "flash", 1, 1, "optimizer step"),
    ],
)
def test_the_peak_of_training_is_that_of_torchs_allocator(values, attention, batch, tokens, fullest):
    model, ids = real(values), torch.zeros((batch, tokens), dtype=torch.long)
    model.set_attn_implementation("eager" if attention == "eager" else "sdpa")
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def run():
        output = model(ids, labels=ids, use_cache=False)  # as loops do: the logits live as long as this
        output.loss.backward()
        optimizer.step()

    for _ in range(2):  # the first makes the optimizer's state
        optimizer.zero_grad()
        measured = most_allocated(run)
    answer = tallystick.memory(values, mode="training", batch=batch, sequence=tokens, attention=attention)
    standing = sum(line.bytes for line in answer.lines if line.part in ("weights", "optimizer"))
    assert answer.peak == fullest
    assert answer.total_bytes - standing == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("tokens", "fullest"), [(512, "recomputation of the first layer"), (64, "recomputation of the last layer")]
)
def test_the_peak_where_blocks_are_computed_again_is_that_of_torchs_allocator(tokens, fullest):
    values = {**LLAMA, "vocab_size": 64, "num_hidden_layers": 8}
    model, ids = real(values), torch.zeros((1, tokens), dtype=torch.long)
    model.train()
    model.set_attn_implementation("sdpa")
    model.gradient_checkpointing_enable()
    optimizer = torch.optim.SGD(model.parameters(), foreach=False)

    def run():
        output = model(ids, labels=ids, use_cache=False)
        output.loss.backward()

    optimizer.zero_grad()
    measured = most_allocated(run)
    answer = tallystick.memory(values, mode="training", optimizer="sgd", sequence=tokens, recompute="full")
    standing = answer.to_dict()["weights_bytes"]
    assert answer.peak == fullest
    # The gradients of `down_proj` are made then, those of all before it in its block are not.
    down, block = 4 * 64 * 96, 4 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64)
    if "last" in fullest:
        told = answer.total_bytes - standing - (block - down)
    else:  # the head's and the last norm's gradients are there, what these had kept is not
        told = answer.total_bytes - standing + 4 * (64 * 64 + 64) + down - 4 * tokens * (64 + 2 * 64 + 1)
    assert told == pytest.approx(measured, rel=0.03)


def test_the_peak_is_the_fullest_of_the_phases():
    answer = told("gpt2", batch=1)
    phases = {phase["phase"]: phase["bytes"] for phase in answer["phases"]}
    states = answer["weights_bytes"] + answer["optimizer_bytes"]
    assert phases == {
        "start of backward": states + answer["activations_bytes"] + answer["logits_bytes"],
        "end of backward": states + answer["gradients_bytes"] + 2 * 38_597_376 * 4,
        "optimizer step": states + answer["gradients_bytes"] + 124_439_808 * 4,
    }
    assert answer["total_bytes"] == phases[answer["peak"]] == max(phases.values())
    assert answer["peak"] == "optimizer step"
    assert tallystick.memory("gpt2", mode="training", batch=32).peak == "start of backward"


def test_recomputation_and_chunks_leave_less_to_keep():
    full = told("gpt2")
    assert told("gpt2", recompute="full")["activations_bytes"] < full["activations_bytes"]
    assert (
        tallystick.memory("gpt2", mode="training", loss="chunked").total_bytes
        < tallystick.memory("gpt2", mode="training").total_bytes
    )


# -- serving --------------------------------------------------------------------------------------


def test_palm_540b_in_float16():
    """The seed's question, in GB and GiB: 540,354,281,472 parameters of two bytes."""
    answer = tallystick.memory("palm-540b", dtype="float16").to_dict()
    assert answer["weights_bytes"] == 1_080_708_562_944


def test_each_token_adds_a_key_and_a_value_in_every_layer():
    answer = tallystick.memory("llama-3-8b", batch=3, sequence=8192).to_dict()
    assert answer["kv_cache_bytes_per_token"] == 2 * 32 * 8 * 128 * 2 == 131_072
    assert answer["kv_cache_bytes"] == 3 * 8192 * 131_072
    assert tallystick.memory("llama-3-8b", kv_dtype="fp8").to_dict()["kv_cache_bytes_per_token"] == 65_536


def test_a_quantised_cache_has_scales():
    """4 bits, and for 64 elements a scale and a zero point of 16 bits each: 4.5 bits of an
    element.
    """
    answer = tallystick.memory("llama-3-8b", sequence=4096, kv_dtype="int4").to_dict()
    assert answer["kv_cache_bytes"] == 4096 * 2 * 32 * 8 * 128 * 9 // 16
    assert any("stay in bfloat16" in note for note in answer["notes"])


def test_a_checkpoint_is_described_by_the_config_beside_it(tmp_path):
    model = real(LLAMA, torch.float16)
    model.save_pretrained(tmp_path)
    answer = tallystick.memory(tmp_path, sequence=16).to_dict()
    assert answer["weights_bytes"] == held(model.parameters())
    assert answer["kv_cache_bytes"] == 16 * 2 * 2 * 2 * 16 * 2
    assert answer["activations_bytes"] > 0


def test_what_a_bare_file_does_not_tell_is_said(tmp_path):
    write(
        tmp_path / "model.safetensors",
        {"wte.weight": (10, 4), "h.0.attn.bias": (1, 1, 4, 4), "h.0.mlp.c_fc.weight": (4, 16)},
    )
    answer = tallystick.memory(tmp_path).to_dict()
    assert answer["weights_bytes"] == 104 * 4
    assert answer["kv_cache_bytes"] == answer["activations_bytes"] == 0
    assert answer["kv_cache_bytes_per_token"] is None
    assert sum("does not describe" in note for note in answer["notes"]) == 2


def test_opt_has_two_rows_more_than_positions():
    assert tallystick.memory("opt-125m").sequence == 2048
    with pytest.raises(BadInput, match="2,049 exceeds the 2,048 learned positions"):
        tallystick.memory("opt-125m", sequence=2049)


def test_endless_layers_take_no_time():
    assert tallystick.memory(LLAMA | {"num_hidden_layers": 10**12}, mode="training").total_bytes > 10**16


# -- the command ----------------------------------------------------------------------------------


def test_the_command_prints_what_python_gives(capsys):
    assert main(["memory", "gpt2", "--mode", "training", "--batch", "2", "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out == json.loads(json.dumps(tallystick.memory("gpt2", mode="training", batch=2).to_dict()))
    assert {"weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "logits_bytes", "kv_cache_bytes",
            "total_bytes", "peak", "phases", "lines", "notes"} <= set(out)  # fmt: skip
    assert {"what", "bytes", "formula", "source", "part"} == set(out["lines"][0])


def test_both_units_are_shown(capsys):
    assert main(["memory", "palm-540b", "--dtype", "float16"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"weights in float16 +1,080,708,562,944 +1,080\.7 +1,006\.5", out)


def test_explain_shows_formulas_and_their_sources(capsys):
    assert main(["memory", "llama-3-8b", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "weights in bfloat16 = 8,030,261,248 × 2 B" in out
    assert "1 × 32 layers × 4,096 tokens × 2,048 × 2 B  (Shazeer 2019" in out
    assert main(["memory", "llama-3-8b"]) == 0
    assert "Shazeer" not in capsys.readouterr().out


@pytest.mark.parametrize(("device", "fits"), [("15GB", False), ("h100", True)])
def test_a_device_is_said_to_hold_it_or_not(capsys, device, fits):
    assert main(["memory", "llama-3-8b", "--device", device, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["fits"] is fits
    assert main(["memory", "llama-3-8b", "--device", device]) == 0
    assert ("does not fit" not in capsys.readouterr().out) is fits


def test_a_device_by_a_file_of_figures(capsys, tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\nmemory = "17GB"\n')
    assert main(["memory", "llama-3-8b", "--sequence", "8", "--device", str(tmp_path / "mine.toml")]) == 0
    assert "fits mine" in capsys.readouterr().out


def test_csv_and_markdown(capsys):
    assert main(["memory", "gpt2", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("part,what,bytes,formula,source\nweights,weights in float32,497759232,")
    assert main(["memory", "gpt2", "--format", "markdown"]) == 0
    assert "| weights in float32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "serving"], "mode is 'serving', expected one of inference, training"),
        (["--optimizer", "adam"], "optimizer is 'adam', expected one of adamw"),
        (["--precision", "mxed"], "nearest: mixed"),
        (["--attention", "flsh"], "nearest: flash"),
        (["--recompute", "all"], "recompute is 'all', expected one of none, selective, full"),
        (["--loss", "chunk"], "nearest: chunked"),
        (["--dtype", "int5"], "unknown number format 'int5'; nearest: int"),
        (["--batch", "0"], "batch is 0, expected a positive integer"),
        (["--batch", "two"], "invalid int value: 'two'"),
        (["--sequence", "-1"], "'-1' is not a sequence length"),
        (["--sequence", "1025"], "a sequence of 1,025 exceeds the 1,024 learned positions of gpt2"),
        (["--kv-dtype", "nf4"], "'nf4' is not a KV cache format"),
        (["--kv-dtype", "bool"], "'bool' is not a KV cache format"),
        (["--mode", "training", "--kv-dtype", "fp8"], "training has no KV cache"),
        (["--mode", "training", "--dtype", "int8"], "int8 weights, such as transformer.wte.weight, cannot be trained"),
        (["--mode", "training", "--dtype", "fp8", "--precision", "master", "--lora", "4"], "precision master does not apply to LoRA: adapters are float32"),
        (["--mode", "training", "--dtype", "float32", "--precision", "master"], "weights in 16 bits, not in float32"),
        (["--mode", "training", "--dtype", "float64", "--precision", "mixed"], "not in float64"),
        (["--lora", "q_proj"], "--lora: 'q_proj' is not a rank"),
        (["--lora", "0"], "the rank of LoRA is 0"),
        (["--lora", "4", "c_atn"], "gpt2 has no linear layer called 'c_atn'; nearest: c_attn"),
        (["--device", "h10"], "unknown device 'h10'; nearest: h100"),
        (["--device", "missing.json"], "missing.json"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_in_one_line(capsys, arguments, words):
    assert main(["memory", "gpt2", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_a_latent_cache_is_not_quantised_to_int4(capsys):
    assert main(["memory", "deepseek-v3", "--kv-dtype", "int4"]) == 2
    assert "caches one latent vector" in capsys.readouterr().err
    assert main(["memory", "deepseek-v3", "--kv-dtype", "fp8"]) == 0
