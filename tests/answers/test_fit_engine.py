"""`fit --engine`: each device says what `serve` says."""

import json

import pytest

import tallystick
from tallystick import BadInput
from tallystick.cli.main import main

SOME = ("rtx4090", "l4", "h100")


def everywhere(source="llama-3.1-8b", devices=SOME, **options):
    return tallystick.fit_engine(source, "vllm", devices, **{"max_model_len": 32768, **options})


def printed(capsys, *words):
    code = main(["fit", *words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_each_device_says_what_serve_says():
    answer = everywhere(input_tokens=4096, output_tokens=1024)
    assert [one.device for one in answer.devices] == ["l4", "rtx4090", "h100"]  # by memory
    for one in answer.devices:
        alone = tallystick.serve(
            "llama-3.1-8b", engine="vllm", device=one.device, max_model_len=32768, tp=one.tp, input_tokens=4096,
            output_tokens=1024,
        )  # fmt: skip
        assert alone.starts
        assert (one.weights_bytes, one.kv_cache_tokens, one.requests) == (
            alone.weights_bytes,
            alone.kv_cache_tokens,
            alone.requests,
        )
        assert one.max_concurrency == alone.max_concurrency
        assert one.tokens_per_second == alone.speed.decoding[0].tokens_per_second


def test_a_device_without_room_names_the_fewest_ranks_that_start():
    small, _, large = everywhere(max_model_len=65536).devices
    assert (small.starts, small.tp, large.starts, large.tp) == (False, 2, True, 1)
    assert "KV cache" in small.limit
    for tp, starts in ((1, False), (2, True)):
        alone = tallystick.serve("llama-3.1-8b", engine="vllm", device="l4", max_model_len=65536, tp=tp)
        assert alone.starts == starts


def test_what_starts_nowhere_has_no_numbers():
    answer = everywhere("llama-3.1-405b", ["t4"])
    (one,) = answer.devices
    assert (one.tp, one.kv_cache_tokens, one.tokens_per_second) == (None, 0, None)
    assert not answer.starts
    assert repr(answer) == "<FitEngine of llama-3.1-405b by vllm: starts on 0 devices of 1>"


def test_llama_cpp_names_the_layers_on_each_device():
    asked = {"dtype": "q4_k_m", "max_model_len": 4096, "gpu_layers": "auto"}
    found = tallystick.fit_engine("llama-3-70b", "llama.cpp", ["rtx4090", "h100"], **asked)
    for one in found.devices:
        alone = tallystick.serve("llama-3-70b", engine="llama.cpp", device=one.device, **asked)
        assert (one.gpu_layers, one.host_bytes) == (alone.options["gpu_layers"], alone.host_bytes)
    small, large = found.devices
    assert 0 < small.gpu_layers < large.gpu_layers == 81
    assert small.host_bytes > large.host_bytes


def test_llama_cpp_has_no_ranks():
    found = tallystick.fit_engine("llama-3-70b", "llama.cpp", ["rtx4090", "h100"], dtype="q4_k_m", max_model_len=4096)
    assert [(one.starts, one.tp) for one in found.devices] == [(False, None), (True, 1)]


def test_the_command_takes_the_words_of_fit(capsys):
    options = ["--engine", "vllm", "--sequence", "8k", "--batch", "16", "--kv-dtype", "fp8", "--input", "1k"]
    code, answer = printed(capsys, "llama-3.1-8b", *options)
    assert code == 0
    assert answer["options"] == {
        "kv_cache_dtype": "fp8", "max_model_len": 8192, "max_num_seqs": 16, "input_tokens": 1024
    }  # fmt: skip
    assert not [one for one in answer["devices"] if one["device"].startswith("tpu")]
    code, one = printed(capsys, "llama-3-70b", "--engine", "vllm", "--sequence", "8k", "--device", "h100")
    assert code == 1
    assert one["lines"] == list(tallystick.serve("llama-3-70b", engine="vllm", device="h100", max_model_len=8192).lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--quantization", "fp8"], "--quantization is of an engine: give --engine too"),
        (["--input", "9"], "--input is of an engine: give --engine too"),
        (["--engine", "vllm", "--optimizer", "sgd"], "--optimizer is not of an engine: leave out --engine"),
        (["--engine", "vllm", "--mode", "training"], "--mode is not of an engine"),
        (["--engine", "vlm"], "engine is 'vlm', expected one of vllm"),
    ],
)
def test_words_that_do_not_belong_together(words, said, capsys):
    assert main(["fit", "gpt2", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_device_and_an_option_that_are_not_known_are_refused():
    with pytest.raises(BadInput, match=r"fit_engine\(\): unknown device 'h999'"):
        everywhere(devices=["h999"])
    with pytest.raises(BadInput, match=r"fit_engine\(\): .*'max_lengths'"):
        everywhere(max_lengths=3)
