"""What `fit` says is what `memory` says, turned round: one more does not fit, and what it advises
does.
"""

import contextlib
import json

import pytest

import tallystick
from checkpoints import write
from tallystick import BadInput
from tallystick.answers.fit import STEPS
from tallystick.cli.main import main

H100 = int(79.22 * 2**30)  # as vllm-project/vllm PR#10511 shows it


def total(source, **options):
    return tallystick.memory(source, **options).total_bytes


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("gpt2", {"mode": "training"}),
        ("gpt2", {"mode": "training", "precision": "mixed", "sequence": 512}),
        ("llama-3-8b", {"sequence": 2048}),
        ("llama-3-8b", {"sequence": 2048, "kv_dtype": "int4"}),
        ("deepseek-v3", {"dtype": "int4", "device": "1TB"}),
        ("mistral-7b", {"mode": "training", "lora": 8}),
    ],
)
def test_the_largest_fits_and_one_more_does_not(source, options):
    device = options.pop("device", "h100")
    answer = tallystick.fit(source, device, **options)
    room = answer.device.room
    assert answer.fits
    assert total(source, **{**options, "batch": answer.largest_batch}) <= room
    assert total(source, **{**options, "batch": answer.largest_batch + 1}) > room
    options.pop("sequence", None)
    assert total(source, **{**options, "sequence": answer.longest_sequence}) <= room
    if source != "gpt2":
        assert total(source, **{**options, "sequence": answer.longest_sequence + 1}) > room


def test_learned_positions_bound_the_sequence():
    assert tallystick.fit("gpt2", "h100").longest_sequence == 1024
    assert tallystick.fit("gpt2", "h100", sequence=5).longest_sequence == 1024


def test_a_device_one_byte_too_small_does_not_fit():
    needed = total("gpt2", sequence=64)
    assert tallystick.fit("gpt2", needed, sequence=64).fits
    answer = tallystick.fit("gpt2", needed - 1, sequence=64)
    assert not answer.fits
    assert (answer.largest_batch, answer.longest_sequence) == (0, 63)


def test_the_widest_dtype_of_llama_3_8b():
    """8.03 billion parameters: 32.1 GB in four bytes, 16.1 in two, about 9.1 with int8 blocks and
    16-bit embeddings.
    """
    for device, widest in (
        ("40GB", "float32"),
        ("rtx4090", "bfloat16"),
        ("12GB", "int8"),
        ("7GB", "int4"),
        ("3GB", None),
    ):
        assert tallystick.fit("llama-3-8b", device, sequence=512).widest_dtype == widest, device


def test_what_memory_does_not_limit_is_said_to_have_no_limit(tmp_path, capsys):
    """A bare file does not tell how its model runs: nothing that is counted grows with the
    batch.
    """
    write(tmp_path / "model.safetensors", {"wte.weight": (10, 4)})
    answer = tallystick.fit(tmp_path, "1GB")
    assert (answer.largest_batch, answer.longest_sequence) == (None, None)
    assert tallystick.fit(tmp_path, 100).largest_batch == 0
    assert main(["fit", str(tmp_path), "--device", "1GB"]) == 0
    assert "no limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "device", "options", "changed"),
    [
        ("gpt2", "rtx4090", {"batch": 16}, {"loss": "chunked"}),
        ("llama-3-8b", "a100-40gb", {}, {"recompute": "full", "lora": 16}),
        ("llama-3-70b", "h100", {}, {"recompute": "full", "lora": 16, "dtype": "nf4"}),
    ],
)
def test_the_cheapest_change_makes_it_fit(source, device, options, changed):
    options = {"mode": "training", **options}
    answer = tallystick.fit(source, device, **options)
    assert not answer.fits
    assert answer.options == changed
    assert len(answer.changes) == len(changed)
    assert answer.changed_bytes == total(source, **{**options, **changed}) <= answer.device.room
    for left_out in changed:  # nothing in it is needless
        fewer = {option: value for option, value in changed.items() if option != left_out}
        try:
            assert total(source, **{**options, **fewer}) > answer.device.room
        except BadInput:  # nf4 alone cannot be trained
            assert left_out == "lora"


def test_serving_is_quantised_before_it_is_given_up():
    answer = tallystick.fit("gemma-2-9b", "rtx4090")  # 9.24 billion parameters, published in float32
    assert answer.options == {"dtype": "bfloat16"}
    answer = tallystick.fit("llama-3-70b", "h100")
    assert answer.options == {"dtype": "int8"}
    answer = tallystick.fit("llama-3-70b", "h100", dtype="int4", batch=20, sequence=4096)
    assert answer.options == {"kv_dtype": "fp8"}


def test_nothing_makes_a_thousand_gigabytes_fit_one_card():
    answer = tallystick.fit(tallystick.count("deepseek-v3", quantization_config=None), "h200")
    assert not answer.fits
    assert answer.changed_bytes is None
    assert answer.changes == ()
    assert answer.options == {}
    assert (answer.spread.ranks, answer.spread.options) == (16, {"tp": 16})  # 1,342 GB over 141 GB cards


@pytest.mark.parametrize(
    ("source", "device", "options"),
    [
        ("llama-3-70b", "a100-80gb", {"mode": "training", "recompute": "full", "loss": "chunked"}),
        ("llama-3.1-405b", "h100", {}),
        ("gpt2-xl", "4GB", {"sequence": 64}),
    ],
)
def test_over_as_few_devices_as_hold_it(source, device, options):
    answer = tallystick.fit(source, device, **options)
    spread, room = answer.spread, answer.device.room
    assert total(source, **options, **spread.options) == spread.bytes <= room
    if "dp" in spread.options:
        assert total(source, **options, dp=spread.ranks // 2, zero=3) > room
    else:
        for tp in (1, 2, 4, 8, 16):
            if spread.ranks // 2 % tp == 0:
                with contextlib.suppress(BadInput):  # heads or layers that so many do not divide
                    assert total(source, **options, tp=tp, pp=spread.ranks // 2 // tp) > room


def test_what_fits_is_not_spread():
    assert tallystick.fit("gpt2", "h100").spread is None
    assert tallystick.fit("gpt2-xl", 1000).spread is None  # bytes: no number of ranks helps


def test_an_optimizer_is_not_exchanged_for_another_kind():
    for optimizer in ("sgd-momentum", "muon", "adafactor"):
        answer = tallystick.fit("gpt2-xl", "16GB", mode="training", optimizer=optimizer)
        assert "optimizer" not in answer.options, optimizer


def test_every_step_is_an_option_of_memory_and_has_words():
    for mode, steps in STEPS.items():
        assert len({step.what for step in steps}) == len(steps)
        for step in steps:
            options = {"mode": mode, step.option: step.value}
            if (step.option, step.value) == ("dtype", "nf4"):
                options["lora"] = 16
            assert total("gpt2", **options) > 0


def test_the_command_exits_with_1_where_it_does_not_fit(capsys):
    assert main(["fit", "gpt2", "--device", "h100"]) == 0
    out = capsys.readouterr().out
    assert "gpt2: inference fits h100" in out
    assert main(["fit", "gpt2", "--device", "rtx4090", "--mode", "training", "--batch", "16"]) == 1
    out = capsys.readouterr().out
    assert "gpt2: training does not fit rtx4090" in out
    assert "--loss chunked" in out
    assert main(["fit", "deepseek-v3", "--device", "h200"]) == 1
    assert "no option makes it fit on one device" in capsys.readouterr().out


def test_the_json_of_fit(capsys):
    assert main(["fit", "llama-3-8b", "--device", "h100", "--sequence", "8192", "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out == json.loads(json.dumps(tallystick.fit("llama-3-8b", "h100", sequence=8192).to_dict()))
    assert (out["device"]["memory"], out["device"]["memory_by"]) == (H100, "its driver")
    assert out["fits"] is True
    assert out["largest_batch"] > 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "h10"], "unknown device 'h10'; nearest: h100"),
        (["--dtype", "bf16,int5"], "unknown number format 'int5'"),
        (["--device", "h100", "--sequence", "2000"], "exceeds the 1,024 learned positions"),
        (["--device", "h100", "--mode", "trainig"], "nearest: training"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(capsys, arguments, words):
    assert main(["fit", "gpt2", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
