"""What `make architecture` writes: a type that counts at once, and its entry in the tests."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from hypothesis import Phase, find, settings

import new_architecture
import tallystick
import unpackaged
from new_architecture import ARCHITECTURES, SUPPORT, UNPACKAGED
from repository import ROOT
from tallystick import architectures

CONFIG = {
    "model_type": "birch",
    "architectures": ["BirchForCausalLM"],
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "mlp_bias": True,
    "tie_word_embeddings": True,
    "rope_theta": 1e6,
    "n_inner": None,
    "eos_token_id": 2,
}
# In an order: embedding, then of each layer attention, MLP with its biases, two norms; the last
# norm.
BIRCH = 1000 * 64 + 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 96 + 64 + 2 * 64) + 64


@pytest.fixture
def root(tmp_path):
    """A copy of the files that a new type is begun from."""
    for folder in (ARCHITECTURES, SUPPORT):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "kit"))
    return tmp_path


@pytest.fixture
def counted(root, add_architectures):
    """Counts configs with the architectures of the copy."""
    add_architectures(root / ARCHITECTURES, "birch", "silver-birch", "mt5")
    return lambda **values: tallystick.count(values)


# Any config will do, and the simplest takes hundreds of draws to find.
ANY = settings(phases=[Phase.generate], database=None, derandomize=True)


def begin(root, *arguments):
    code = new_architecture.main([*map(str, arguments)], root)
    importlib.invalidate_caches()  # the file may be written within a tick of the clock
    return code


def test_a_skeleton_counts_at_once(root, counted, capsys):
    assert architectures.find("birch") is None
    assert begin(root, "birch") == 0
    assert counted(model_type="birch").total == 6_738_415_616  # Llama's default config
    assert counted(model_type="birch", hidden_size=64, num_attention_heads=4).architecture == "birch"
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"wrote {ARCHITECTURES}/birch.py", f"wrote {UNPACKAGED}"]
    assert [line.strip()[:2] for line in said[2:]] == ["ne", "1.", "2.", "3."]
    assert 'python -m pytest tests/architectures -k "[birch] or [birch-"' in said[4]
    assert "skeletons.py" in said[4]
    assert "make measure architectures" in said[5]


@pytest.mark.usefixtures("preloaded")
def test_the_check_takes_the_tests_of_the_type_alone():
    """All of a type that few tests know, and none of Qwen 2, whose name begins so too."""
    files = [f"tests/architectures/{name}.py" for name in ("test_roles", "test_unpackaged")]
    command = [sys.executable, "-m", "pytest", "--collect-only", *files, "-k", new_architecture.selection("qwen")]
    every_case = {**os.environ, "TALLYSTICK_EXAMPLES": "1"}  # also those that a commit leaves out
    done = subprocess.run(command, cwd=ROOT, env=every_case, capture_output=True, text=True, check=False)
    taken = [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert {"test_every_tensor_has_a_role[qwen]", "test_drawn_configs[qwen]"} < {*taken}
    assert len(taken) == 2 + len(unpackaged.UNPACKAGED["qwen"].published)
    assert all(re.search(r"\[qwen[]-]", name) for name in taken)


def test_other_names_that_begin_with_the_type_are_left_out():
    assert new_architecture.selection("modernbert") == "([modernbert] or [modernbert-) and not [modernbert-decoder"
    assert " and not [bert-base-cased" in new_architecture.selection("bert")


def test_a_config_gives_the_defaults(root, counted):
    """Those that are plain; what its keys say that the copied file does not read is listed."""
    (root / "config.json").write_text(json.dumps(CONFIG))
    assert begin(root, "birch", "--config", root / "config.json") == 0
    ledger = counted(model_type="birch")
    assert ledger.total == counted(**CONFIG).total == BIRCH
    assert architectures.find("birch").class_name == "BirchForCausalLM"
    text = (root / ARCHITECTURES / "birch.py").read_text()
    assert "Not read of its config: rope_theta=1000000.0, n_inner=null." in text
    assert "eos_token_id" not in text


def test_a_config_may_have_other_names_of_keys(root, counted):
    """EXAONE's depth is `num_layers`, and `num_hidden_layers` in most configs."""
    (root / "config.json").write_text(json.dumps(CONFIG))
    assert begin(root, "birch", "--like", "exaone", "--config", root / "config.json") == 0
    total = tallystick.count({**CONFIG, "model_type": "exaone", "architectures": ["ExaoneForCausalLM"]}).total
    assert counted(model_type="birch").total == total
    [(values, _)] = runpy.run_path(str(root / UNPACKAGED))["UNPACKAGED"]["birch"].published
    assert counted(model_type="birch", **values).total == total


@pytest.mark.parametrize("like", ["granite", "gpt2", "falcon", "mixtral", "mamba2", "olmo_hybrid", "internlm2"])
def test_any_type_with_a_file_of_its_own_can_be_begun_from(root, counted, like):
    assert begin(root, "silver-birch", "--like", like) == 0
    of = architectures.find(like)
    assert counted(model_type="silver-birch").total == tallystick.count({"model_type": like}).total
    assert architectures.find("silver-birch").keys == of.keys
    assert "def silver_birch(" in (root / ARCHITECTURES / "silver-birch.py").read_text()


def test_a_type_that_transformers_lacks_is_held_by_a_published_count(root, counted):
    (root / "config.json").write_text(json.dumps(CONFIG))
    assert begin(root, "birch", "--config", root / "config.json") == 0
    entry = runpy.run_path(str(root / UNPACKAGED))["UNPACKAGED"]["birch"]
    assert 0 < counted(model_type="birch", **entry.small).total < 10_000
    [(values, published)] = entry.published
    assert published == 0  # for the author to find
    assert counted(model_type="birch", **values).total == BIRCH


@pytest.mark.parametrize("like", ["llama", "mixtral", "falcon", "bloom", "mamba2", "zamba2"])
def test_a_type_of_transformers_is_drawn_as_the_one_that_it_resembles(root, counted, like, capsys):
    assert begin(root, "mt5", "--like", like) == 0
    _, line, *_ = capsys.readouterr().out.splitlines()
    families = runpy.run_path(str(root / line.removeprefix("wrote ")))["FAMILIES"]
    assert families["mt5"].small == families[like].small
    values = find(families["mt5"].drawn, lambda _: True, settings=ANY)
    assert values["model_type"] == "mt5"
    assert counted(**values).total == tallystick.count({**values, "model_type": like}).total


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["llama"], "llama is a native type already: src/tallystick/architectures/llama.py is left as it is"),
        (["camembert"], "camembert is a native type already"),
        (["Birch"], "NAME is 'Birch': expected a model_type, in lower case"),
        (["../birch"], "NAME is '../birch'"),
        (["birch", "--like", "lama"], "LIKE is 'lama', which is no native type; nearest: llama"),
        (["mt5", "--like", "nanogpt"], "no families_*.py has an entry of its own for nanogpt: take another LIKE"),
        (["birch", "--like", "camembert"], "camembert is another name of roberta: take LIKE=roberta"),
        (["birch", "--config", "nowhere.json"], "CONFIG=nowhere.json cannot be read as JSON"),
    ],
)
def test_what_cannot_be_begun_is_said_in_a_line(root, arguments, why, capsys):
    before = {path: path.read_bytes() for path in root.rglob("*.py")}
    assert begin(root, *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"make architecture: {why}")
    assert said.count("\n") == 1
    assert {path: path.read_bytes() for path in root.rglob("*.py")} == before


def test_a_file_that_is_there_is_not_overwritten(root, capsys):
    assert begin(root, "birch") == 0
    capsys.readouterr()
    assert begin(root, "birch") == 2
    assert "birch is a native type already" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[1]", "{"])
def test_a_config_that_is_none_is_refused(root, text, capsys):
    (root / "config.json").write_text(text)
    assert begin(root, "birch", "--config", root / "config.json") == 2
    assert capsys.readouterr().err.startswith(f"make architecture: CONFIG={root / 'config.json'} ")
    assert not (root / ARCHITECTURES / "birch.py").exists()
