"""Several dtypes side by side, the largest layer, a model on all devices, GPU-hours."""

import json

import pytest

import tallystick
from tallystick.answers.devices import DEVICES
from tallystick.answers.fit_all import fit_all
from tallystick.cli.main import main


@pytest.fixture
def run(capsys):
    def call(*words):
        assert main(words) == 0
        return json.loads(capsys.readouterr().out)

    return call


# -- dtypes ---------------------------------------------------------------------------------------


def test_each_dtype_is_as_alone(run):
    several = run("memory", "gpt2", "--dtype", "bf16,int8,int4", "--format", "json")
    assert several["dtypes"] == ["bfloat16", "int8", "int4"]
    for dtype, answer in zip(("bf16", "int8", "int4"), several["answers"], strict=True):
        assert answer == run("memory", "gpt2", "--dtype", dtype, "--format", "json")
    assert several["answers"][0]["weights_bytes"] == 2 * 124_439_808


def test_several_dtypes_and_several_lengths_are_refused(capsys):
    assert main(["memory", "gpt2", "--dtype", "bf16,int8", "--sequence", "1k,512"]) == 2
    assert "several of --dtype or of --sequence" in capsys.readouterr().err
    assert main(["memory", "gpt2", "--dtype", "bf16,int5"]) == 2
    assert "unknown number format 'int5'" in capsys.readouterr().err


# -- the largest layer ----------------------------------------------------------------------------

CONFIGS = [
    {"model_type": "gpt2", "n_layer": 2},
    {"model_type": "gpt2", "n_layer": 2, "vocab_size": 300},
    {"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 1000, "num_key_value_heads": 8},
    {"model_type": "qwen2", "num_hidden_layers": 2, "vocab_size": 151_936, "tie_word_embeddings": True},
    {"model_type": "mixtral", "num_hidden_layers": 2},
    {"model_type": "gemma2", "num_hidden_layers": 3},
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config['model_type']} {config.get('vocab_size', '')}")
def test_the_largest_layer_is_that_of_accelerate(config):
    torch = pytest.importorskip("torch")
    accelerate = pytest.importorskip("accelerate.utils")
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=torch.float32)
    model.tie_weights()
    _, (size, names) = accelerate.calculate_maximum_sizes(model)
    largest = tallystick.memory(config, dtype="float32").largest_layer
    assert largest is not None
    buffers = sum(one.nbytes for one in model.get_submodule(names[0]).buffers())  # Gemma's embed_scale
    assert largest.bytes == size - buffers
    assert largest.name.partition("-")[0] in {str(name) for name in names}


def test_the_largest_layer_in_a_packed_format_has_its_scales():
    # With a small vocabulary, the blocks are larger than the embedding.
    ledger = tallystick.count("llama-3-8b", vocab_size=1000)
    largest = tallystick.memory(ledger, dtype="int4").largest_layer
    products = 4096 * (4096 + 1024 + 1024 + 4096 + 3 * 14_336)
    assert largest is not None
    assert largest.bytes == products // 2 + products // 128 * 4 + 2 * 4096 * 2
    assert tallystick.memory("gpt2", mode="training").largest_layer is None


# -- all devices ----------------------------------------------------------------------------------


def test_each_cell_is_what_fit_says_of_its_device():
    ledger = tallystick.count("llama-3-8b")
    answer = fit_all(ledger, devices=[DEVICES[name] for name in ("rtx4090", "t4", "h100")])
    assert answer.dtypes == ("bfloat16", "int8", "int4")
    assert len(answer.devices) == 9
    for cell in answer.devices:
        alone = tallystick.fit(ledger, cell.device, dtype=cell.dtype)
        assert (cell.fits, cell.largest_batch, cell.longest_sequence) == (
            alone.fits,
            alone.largest_batch,
            alone.longest_sequence,
        )
        assert cell.total_bytes == alone.asked.total_bytes


def test_fit_without_a_device_lists_all(capsys):
    assert main(["fit", "llama-3-8b"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in DEVICES)
    assert ["rtx4090", "25.3", "8", "/", "33k", "15", "/", "60k", "18", "/", "73k"] in [
        line.split() for line in printed.splitlines()
    ]
    assert main(["fit", "llama-3.1-405b", "--dtype", "bf16"]) == 1
    assert main(["fit", "llama-3.1-405b", "--dtype", "bf16", "--no-exit-code"]) == 0


def test_training_and_adapters_have_their_own_dtypes(run):
    assert run("fit", "llama-3-8b", "--mode", "train", "--format", "json")["dtypes"] == ["float32", "bfloat16"]
    assert run("fit", "llama-3-8b", "--mode", "train", "--lora", "8", "--format", "json")["dtypes"][-1] == "nf4"


def test_advice_is_flags_that_make_it_fit(capsys):
    words = ["fit", "llama-3-8b", "--device", "24GB", "--batch", "16"]
    assert main([*words, "--format", "json"]) == 1
    flags = json.loads(capsys.readouterr().out)["flags"]
    assert flags
    assert main(words) == 1
    assert f": {' '.join(flags)}\n" in capsys.readouterr().out
    assert main([*words, *(word for flag in flags for word in flag.split())]) == 0


# -- bars -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "bar", "left"),
    [("h100", "█" * 8 + "░" * 32, "67.4 GB free"), ("t4", "█" * 40, "2.0 GB too much")],
)
def test_a_terminal_gets_a_bar_of_the_device(capsys, monkeypatch, device, bar, left):
    import re

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["memory", "llama-3-8b"], ["fit", "llama-3-8b", "--no-exit-code"]):
        assert main([*words, "--device", device]) == 0
        printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
        assert f"  {bar} {left}\n" in printed
    monkeypatch.delenv("FORCE_COLOR")
    main(["memory", "llama-3-8b", "--device", device])
    assert "█" not in capsys.readouterr().out


# -- hours of devices -----------------------------------------------------------------------------


def test_hours_of_devices_and_days_on_many(run):
    answer = run(
        "compute", "llama-3.1-405b", "--sequence", "8k", "--tokens", "15.6T", "--device", "h100", "--mfu", "41%",
        "--devices", "16384", "--format", "json",
    )  # fmt: skip
    rate = answer["rate"]
    hours = rate["flops_per_token"] * 15.6e12 / (989.4e12 * 0.41) / 3600
    assert rate["device_hours"] == pytest.approx(hours)
    assert rate["wall_seconds"] == pytest.approx(hours * 3600 / 16384)
    # Meta's model card: 30.84M GPU hours on H100s. The paper reports an MFU from 38% to 43%.
    assert 0.85 < rate["device_hours"] / 30.84e6 < 1.05


def test_hours_of_devices_in_words(capsys):
    assert main(["compute", "gpt2", "--device", "h100", "--tokens", "1T", "--devices", "8", "--mfu", "50%"]) == 0
    printed = capsys.readouterr().out
    assert "GPU-hours" in printed
    assert "on 8 devices" in printed
    assert main(["compute", "gpt2", "--device", "h100", "--devices", "0"]) == 2
    assert "devices is 0, expected a number from 1 on" in capsys.readouterr().err


# -- one block ------------------------------------------------------------------------------------


def test_the_steps_have_a_subtotal_of_one_block(capsys, run):
    assert main(["formula", "gpt2", "--steps"]) == 0
    # 12·768² + 13·768, as GPT-2's papers and courses derive it
    assert "one block of transformer.h.0–11: 7,087,872 × 12 = 85,054,464" in capsys.readouterr().out
    blocks = run("formula", "deepseek-v3", "--format", "json")["blocks"]
    assert [block["layers"] for block in blocks] == [3, 58]


# -- every device ---------------------------------------------------------------------------------


def test_fit_all_says_of_each_device_what_fit_says():
    everywhere = tallystick.fit_all("llama-3-8b", ["bf16", "int4"], sequence=2048, num_hidden_layers=8)
    assert everywhere.dtypes == ("bfloat16", "int4")
    for cell in everywhere.devices[::7]:
        one = tallystick.fit("llama-3-8b", cell.device, dtype=cell.dtype, sequence=2048, num_hidden_layers=8)
        assert (cell.fits, cell.largest_batch) == (one.fits, one.largest_batch), cell


def test_fit_all_takes_the_options_of_memory_but_the_device():
    assert tallystick.fit_all("gpt2", mode="training").dtypes == ("float32", "bfloat16")
    with pytest.raises(tallystick.BadInput, match=r"^fit_all\(\): batch is 0"):
        tallystick.fit_all("gpt2", batch=0)
    with pytest.raises(tallystick.BadInput, match=r"^fit_all\(\): .*'device'"):
        tallystick.fit_all("gpt2", device="h100")
