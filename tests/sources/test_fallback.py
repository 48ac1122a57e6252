"""Types that transformers builds: in a process of its own, sealed off, ended when it takes too
much.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import threading

import pytest
import transformers

import tallystick
from tallystick import BadInput
from tallystick.sources.transformers_meta import process

pytestmark = pytest.mark.usefixtures("preloaded_module")

MT5 = {"model_type": "mt5", "num_layers": 1, "vocab_size": 10}


def test_a_type_of_the_users_own_is_built_where_it_was_added():
    levels: list[int] = []

    class OwnConfig(transformers.GPT2Config):
        model_type = "own-gpt2"

    class OwnModel(transformers.GPT2LMHeadModel):
        config_class = OwnConfig

        def __init__(self, config: OwnConfig) -> None:
            super().__init__(config)
            levels.append(transformers.logging.get_verbosity())

    transformers.AutoConfig.register("own-gpt2", OwnConfig)
    transformers.AutoModelForCausalLM.register(OwnConfig, OwnModel)
    truth = OwnModel(OwnConfig(n_layer=1))
    levels.clear()
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_info()
    try:
        counted = tallystick.count({"model_type": "own-gpt2", "n_layer": 1})
        assert (levels, transformers.logging.get_verbosity()) == (
            [transformers.logging.ERROR],
            transformers.logging.INFO,
        )
    finally:
        transformers.logging.set_verbosity(before)
    assert counted.total == sum(parameter.numel() for parameter in truth.parameters())
    assert truth.transformer.wte.weight.std() > 0  # its first values are drawn as ever


def test_a_config_with_the_keys_of_params_json_is_of_its_model_type():
    config = transformers.DistilBertConfig(n_layers=2)  # it has dim, n_layers and n_heads too
    truth = transformers.DistilBertForMaskedLM(config)
    assert tallystick.count(config.to_dict()).total == sum(parameter.numel() for parameter in truth.parameters())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGXCPU])
def test_a_process_that_was_ended_is_started_again(number: int):
    tallystick.count(MT5)
    started = process._running()._process
    os.kill(started.pid, number)
    started.wait()
    assert tallystick.count(MT5).total


def test_a_process_that_nobody_asked_for_long_gives_way_to_another(monkeypatch: pytest.MonkeyPatch):
    tallystick.count(MT5)
    before = process._running()
    monkeypatch.setattr(process, "IDLE", 0)
    tallystick.count(MT5)
    assert before._process.poll() is not None
    assert process._running() is not before


def test_a_build_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "WAIT", 0.01)
    with pytest.raises(BadInput, match=r"^the dictionary: transformers needs more than 0.01 seconds to build it$"):
        tallystick.count({**MT5, "num_layers": 900})
    monkeypatch.undo()
    assert tallystick.count(MT5).total


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_DATA"), reason="this system does not limit memory")
def test_memory_that_a_build_may_not_take():
    with pytest.raises(BadInput, match=r"transformers needs more than .* (bytes of memory|seconds) to build it$"):
        tallystick.count({**MT5, "num_labels": 10**9})  # each is given a name
    assert tallystick.count(MT5).total


def test_several_threads_ask_at_once():
    totals: list[int] = []
    threads = [threading.Thread(target=lambda: totals.append(tallystick.count(MT5).total)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(totals) == 8
    assert len(set(totals)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_asks_a_process_of_its_own():
    total = tallystick.count(MT5).total
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, json.dumps(tallystick.count(MT5).total).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(os.read(reading, 100)) == total == tallystick.count(MT5).total


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "is not a value that JSON can represent"),
        ({1, 2}, "is not a value that JSON can represent"),
        (10**5000, "holds a value that JSON cannot represent"),
    ],
    ids=["object", "set", "digits"],
)
def test_values_that_no_config_holds(value: object, words: str):
    with pytest.raises(BadInput, match=words):
        tallystick.count({**MT5, "d_kv": value})


def test_a_type_that_no_auto_class_builds_is_said_without_reading_all_others():
    with pytest.raises(BadInput, match=r"cannot build it: ValueError: no Auto class builds a Pop2PianoConfig$"):
        tallystick.count({"model_type": "pop2piano"})
    assert transformers.Pop2PianoConfig not in transformers.AutoModel._model_mapping


def test_what_would_be_fetched_is_said_with_the_key_that_names_it():
    with pytest.raises(BadInput, match=r"^the dictionary: backbone names 'somebody/swin', which transformers would f"):
        tallystick.count({"model_type": "upernet", "backbone": "somebody/swin"})
