"""Every command with every kind of SOURCE: one model, named in all the ways there are, gives one
answer or one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tallystick
from checkpoints import gpt2_published, write, write_config
from host import Host, publish, serving
from tallystick import BadInput, architectures
from tallystick.cli.main import main

CONFIG = {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64, "n_embd": 128, "n_layer": 2, "n_head": 4}
# By hand: (1000 + 64) × 128, two blocks of 12 × 128² + 13 × 128, and a last norm of 2 × 128.
PARAMETERS = 136_192 + 2 * (196_608 + 1_664) + 256
# Each token goes through the blocks' matrices and the head, 2 operations a weight, and scores 64
# positions in 2 layers.
FLOPS = 2 * 64 * (2 * 196_608 + 1000 * 128) + 2 * 2 * 2 * 64 * 64 * 128
FACTORY = """
from torch import nn
CONFIG = {config!r}
def build():
    model = nn.Module()
    model.wte, model.rest = nn.Embedding(1000, 128), nn.Linear({rest}, 1, bias=False)
    return model
"""


def write_kinds(folder: Path, config: dict[str, Any], host: Host) -> dict[str, str]:
    """One model in each kind of SOURCE, with the word that names it."""
    for home in (folder, folder / "bare", folder / "weights"):
        home.mkdir(exist_ok=True)
        write_config(home, config)
    flat = {key: value for key, value in config.items() if not isinstance(value, dict)}
    nested = {key: value for key, value in config.items() if isinstance(value, dict)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in flat.items()]
    for name, part in nested.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in part.items())]
    (folder / "config.toml").write_text("\n".join(lines))
    (folder / "config.yaml").write_text("\n".join(f"{key}: {value}" for key, value in flat.items()))
    (folder / "pasted.txt").write_text(f"CONFIG = {config!r}  # as in the book\n")
    module = f"sizes_{len(config)}"  # imported once, wherever it is
    (folder / f"{module}.py").write_text(FACTORY.format(config=config, rest=PARAMETERS - 128_000))
    write(folder / "weights" / "model.safetensors", gpt2_published(layers=2, width=128, vocabulary=1000, positions=64))
    files = {path.name: path.read_bytes() for path in (folder / "weights").iterdir()}
    publish(host, host, "org/name", files)
    publish(host, host, "org/bare", {"config.json": files["config.json"]})
    host.files |= {f"/web/{name}": content for name, content in files.items()}
    return {
        "config.json": "config.json",
        "TOML": "config.toml",
        "YAML": "config.yaml",
        "pasted text": "pasted.txt",
        "module:NAME": f"{module}:CONFIG",
        "folder": "./bare",
        "folder with weights": "weights",
        "weights": "weights/model.safetensors",
        "hf://, config alone": "hf://org/bare",
        "hf://, with weights": "hf://org/name",
        "https://, config": f"{host.address}/web/config.json",
        "https://, weights": f"{host.address}/web/model.safetensors",
        "module:factory": f"{module}:build",
    }


KINDS = (
    "config.json", "TOML", "YAML", "pasted text", "module:NAME", "folder", "folder with weights", "weights",
    "hf://, config alone", "hf://, with weights", "https://, config", "https://, weights", "module:factory",
)  # fmt: skip


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str], Path, dict[str, str]]]:
    """A model's names, and those of one that holds it as its text."""
    from huggingface_hub import constants

    with pytest.MonkeyPatch.context() as patch, serving() as one, serving() as other:
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        model, whole = tmp_path_factory.mktemp("model"), tmp_path_factory.mktemp("whole")
        words, nested = write_kinds(model, CONFIG, one), write_kinds(whole, {"text_config": CONFIG}, other)
        yield model, {**words, "host": one.address}, whole, {**nested, "host": other.address}


@pytest.fixture
def word(
    named: tuple[Path, dict[str, str], Path, dict[str, str]], kind: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The word for a kind, from the folder where it is one."""
    from huggingface_hub import constants

    folder, words = named[2:] if command == "count --part text" else named[:2]
    monkeypatch.setattr(constants, "ENDPOINT", words["host"])
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    (folder / "derivation.md").write_text("Token embedding: 1000 × 128 = 128,000")
    return words[kind]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The JSON that a command prints; `BadInput` with its one line where it refuses."""
    code = main([*words, "--format", "json"])
    said = capsys.readouterr()
    if code == 2:
        assert said.err.startswith("tallystick: ")
        assert said.err.count("\n") == 1
        raise BadInput(said.err.strip().removeprefix("tallystick: "))
    return json.loads(said.out)


def explored(word: str, monkeypatch: pytest.MonkeyPatch) -> object:
    from tallystick.web import serve

    shown: list[object] = []
    monkeypatch.setattr(serve, "serve", lambda source, settings, **_: shown.append(source))
    if main(["explore", word, "--no-browser"]):
        raise BadInput("refused")
    return shown[0]


def trained(word: str) -> Any:
    from tallystick.training.config import TrainConfig
    from tallystick.training.model import config_of_model

    return config_of_model(TrainConfig(source=word, sequence=64), vocabulary=1000)


def survived(word: str) -> Any:
    from tallystick.live.subjects import subject_of

    return subject_of(word, {})


# What each command says of the model, and what it should.
COMMANDS: dict[str, tuple[Callable[..., object], object]] = {
    "count": (lambda ask, word: ask("count", word)["totals"]["unique"], PARAMETERS),
    "count --part text": (lambda ask, word: ask("count", word, "--part", "text")["totals"]["unique"], PARAMETERS),
    "compare": (lambda ask, word: ask("compare", word, "gpt2")["gap"], 124_439_808 - PARAMETERS),
    "memory": (lambda ask, word: ask("memory", word)["weights_bytes"], 4 * PARAMETERS),
    "fit": (lambda ask, word: ask("fit", word, "--device", "24GB")["fits"], True),
    "compute": (lambda ask, word: ask("compute", word)["forward_flops"], FLOPS),
    "formula": (lambda ask, word: ask("formula", word)["value"], PARAMETERS),
    "reconcile": (lambda ask, word: ask("reconcile", word, str(PARAMETERS))["explained"], True),
    "check": (lambda ask, word: ask("check", "derivation.md", "--against", word)["equations"][0]["matches"], "token embedding"),
    "ties": (lambda ask, word: ask("ties", word)["verdict"], "consistent"),
}  # fmt: skip
LIVE: dict[str, tuple[Callable[..., object], object]] = {
    "survive": (lambda word: survived(word).head, "lm_head.weight"),
    "train": (lambda word: trained(word).vocab_size, 1000),
}


NO_PART = "is not a config, so its language part cannot be counted"
NO_CONFIG = "is not a config: name a preset, a config.json or a folder with one"
REFUSED = {
    ("count --part text", "YAML"): "is empty",  # its configs are flat
    ("count --part text", "weights"): f"{NO_PART}: name its config.json",
    ("count --part text", "https://, weights"): f"{NO_PART}: name its config.json",
    ("count --part text", "module:factory"): f"{NO_PART}$",
    ("survive", "weights"): "has weights but no config: name the folder with its config.json",
    ("survive", "https://, weights"): "has weights but no config: name the folder with its config.json",
    ("survive", "module:factory"): "has no head tied to its token embedding",
    ("train", "weights"): NO_CONFIG,
    ("train", "https://, weights"): NO_CONFIG,
    ("train", "module:factory"): NO_CONFIG,
}
# Of a module nobody knows how its parts run, or what should be tied: by hand, an embedding and a
# matrix.
OTHERWISE = {
    ("compute", "module:factory"): 2 * 4096 * (PARAMETERS - 128_000),
    ("ties", "module:factory"): "unknown",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", [*COMMANDS, *LIVE])
def test_a_source_is_named_alike_in_every_command(
    word: str, kind: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked() -> object:
        if command in LIVE:
            return LIVE[command][0](word)
        return COMMANDS[command][0](lambda *words: answer(capsys, *words), word)

    if refusal := REFUSED.get((command, kind)):
        with pytest.raises(BadInput, match=refusal):
            asked()
    else:
        assert asked() == OTHERWISE.get((command, kind), {**COMMANDS, **LIVE}[command][1])


# OpenAI's GPT-2 has 124,439,808; of these the blocks' matrices and the head compute, as above.
PRESET = {
    "count": 124_439_808,
    "compare": 0,
    "memory": 4 * 124_439_808,
    "fit": True,
    "compute": 2 * 1024 * (12 * 12 * 768**2 + 50257 * 768) + 12 * 2 * 2 * 1024**2 * 768,
    "formula": 124_439_808,
    "ties": "consistent",
    "survive": "lm_head.weight",
    "train": 1000,  # as asked for
}


@pytest.mark.parametrize("command", PRESET)
@pytest.mark.parametrize("name", ["gpt2", "GPT2"])
def test_a_preset_is_a_source_of_every_command(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()  # which ./gpt2 would name
    if command in LIVE:
        assert LIVE[command][0](name) == PRESET[command]
    else:
        assert COMMANDS[command][0](lambda *words: answer(capsys, *words), name) == PRESET[command]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["explore"])
def test_the_page_shows_it_too(word: str, kind: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explored(word, monkeypatch) == word


GIVEN = {
    "a dictionary": lambda folder: CONFIG,
    "a config": lambda folder: SimpleNamespace(to_dict=lambda: CONFIG),
    "a path": lambda folder: folder / "config.json",
    "the path of a folder": lambda folder: folder,
}
FUNCTIONS: dict[str, tuple[Callable[[Any], object], object]] = {
    "count": (lambda source: tallystick.count(source).total, PARAMETERS),
    "compare": (lambda source: tallystick.compare(source, "gpt2").gap, 124_439_808 - PARAMETERS),
    "memory": (lambda source: tallystick.memory(source).to_dict()["weights_bytes"], 4 * PARAMETERS),
    "fit": (lambda source: tallystick.fit(source, "24GB").fits, True),
    "compute": (lambda source: tallystick.compute(source).forward_flops, FLOPS),
    "formula": (lambda source: tallystick.formula(source).value, PARAMETERS),
    "reconcile": (lambda source: tallystick.reconcile(source, PARAMETERS).explained, True),
    "check": (lambda source: tallystick.check("1000 × 128 = 128,000", against=source).equations[0].matches, "token embedding"),
    "ties": (lambda source: tallystick.ties(source).verdict, "consistent"),
    "train": (lambda source: trained(source).vocab_size, 1000),
}  # fmt: skip


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_objects_are_taken_alike_by_every_function(tmp_path: Path, given: str, function: str) -> None:
    write_config(tmp_path, CONFIG)
    ask, expected = FUNCTIONS[function]
    assert ask(GIVEN[given](tmp_path)) == expected


@pytest.mark.parametrize("kept", ["config.json", "folder with weights"])
@pytest.mark.parametrize("named", ["GPT2LMHeadModel", "GPT2ForSequenceClassification", None])
def test_what_a_config_is_is_asked_once(
    tmp_path: Path, kept: str, named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(tmp_path, {**CONFIG, "architectures": [named]} if named else CONFIG)
    if kept != "config.json":
        write(tmp_path / "model.safetensors", gpt2_published(layers=2, width=128, vocabulary=1000, positions=64))
    asked: list[str] = []
    really = architectures.find
    monkeypatch.setattr(architectures, "find", lambda model_type: (asked.append(model_type), really(model_type))[1])
    tallystick.count(tmp_path)
    assert asked == ["gpt2"]
