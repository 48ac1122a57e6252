"""The page of the JSON names every key that an answer has."""

import json
import re
import tempfile
from contextlib import redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path

import pytest

import tallystick
from all_answers import DERIVATION
from repository import ROOT
from tallystick.answers.devices import DEVICES
from tallystick.answers.fit_all import fit_all
from tallystick.answers.memory.number_formats import known_formats
from tallystick.answers.memory.sweep import sweep_dtypes
from tallystick.cli.main import main
from tallystick.live.survive import Survived
from tallystick.live.survive import survive as run_survive

PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
SECTIONS = {section.partition("\n")[0]: section for section in PAGE.split("\n## ")[1:]}


def of_a_checkpoint(*command):
    """What a command prints of a small model that is made on the spot."""
    from tallystick.models import Decoder, save_pretrained
    from tallystick.models.tokens import Tokenizer

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()) as printed:
        name, *options = command
        model = Path(folder) / "model"
        save_pretrained(Decoder.of("gpt2", vocab_size=257, n_embd=8, n_layer=1, n_head=2, n_positions=8), model)
        Tokenizer.bytes().save(model)
        assert main([name, str(model), *options, "--format", "json"]) == 0
    return json.loads(printed.getvalue())


def of_a_quiz(*words):
    """What the quiz prints."""
    with redirect_stdout(StringIO()) as printed:
        main(["quiz", *words, "--format", "json"])
    found = json.loads(printed.getvalue())
    return {key: len(value) if key in ("models", "sizes") else value for key, value in found.items()}


ANSWERS = {
    "count": lambda: {
        **tallystick.count("gpt2").to_dict(),
        "rows": tallystick.count("gpt2").rows("tensor") + tallystick.count("gpt2").rows("module"),
    },
    "formula": lambda: tallystick.formula("gpt2").to_dict(),
    "compare": lambda: tallystick.compare("gpt2", "gpt2-xl").to_dict(),
    "reconcile": lambda: tallystick.reconcile("gpt2", "163M").to_dict(),
    "check": lambda: tallystick.check(DERIVATION, against="gpt2").to_dict(),
    "quiz": lambda: [of_a_quiz(), of_a_quiz("embedding", "3")],
    "memory": lambda: [
        tallystick.memory("gpt2", mode="training", device="h100").to_dict(),
        sweep_dtypes(tallystick.count("gpt2"), ["int8"]).to_dict(),
    ],
    "fit": lambda: [
        tallystick.fit("gpt2", "h100").to_dict(),
        fit_all(tallystick.count("gpt2")).to_dict(),
        {**tallystick.fit_engine("gpt2", "vllm", ["h100"]).to_dict(), "options": {}},
    ],
    "serve": lambda: tallystick.serve("gpt2", engine="vllm", device="h100", input_tokens=9).to_dict(),
    "compute": lambda: tallystick.compute("gpt2", device="h100", tokens="1B", mfu=0.4).to_dict(),
    "ties": lambda: tallystick.ties("gpt2").to_dict(),
    "devices": DEVICES["h100"]._asdict,
    "dtypes": lambda: [one._asdict() for one in known_formats()],
    "generate": lambda: of_a_checkpoint("generate"),
    "evaluate": lambda: of_a_checkpoint("evaluate", __file__),
    "survive": lambda: {
        **run_survive(operations=[]).to_dict(),
        "rows": [{field.name: None for field in fields(Survived)}],
    },
}
VALUES_FOR_KEYS = {
    "symbols",
    "parts",
    "parts_at_peak",
    "versions",
    "options",
}  # whose keys are the model's or Python's own


def keys_of(answer, inside=""):
    if isinstance(answer, dict):
        for key, value in answer.items():
            if inside not in VALUES_FOR_KEYS:
                yield key
            yield from keys_of(value, key)
    for item in answer if isinstance(answer, list) else ():
        yield from keys_of(item, inside)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_key_is_on_the_page(name):
    told = set(re.findall(r"`(\w+)`", SECTIONS[name])) | {"source", "notes"}
    assert set(keys_of(ANSWERS[name]())) - told == set()


def test_every_section_is_a_commands():
    assert SECTIONS.keys() == ANSWERS.keys()
