"""The wheel with its own dependencies and nothing else: whatever needs more says in one line what
installs it.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from repository import ROOT
from tallystick.extras import pip_install

CORE = ("rich", "pygments", "markdown_it", "mdurl", "shtab")

# Run by the empty environment's Python. It prints what each call ended with.
DRIVER = """
import contextlib, io, json, sys, traceback
import tallystick
from tallystick.cli.commands import COMMANDS
from tallystick.cli.main import main

def said(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return {"code": code, "error": err.getvalue()}

def raised(call):
    try:
        call()
    except BaseException as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"kinds": kinds, "error": str(error)}
    return {"kinds": [], "error": ""}

def imported(name):
    return lambda: __import__(name, fromlist=["x"])

def watched():
    with tallystick.watch(object()):
        pass

def iterated(name):
    return lambda: getattr(tallystick, name)(object())

commands = json.loads(sys.argv[1])
functions = {
    "count": lambda: tallystick.count("gpt2"),
    "count of a module": lambda: tallystick.count("of_torch:build"),
    "count of another": lambda: tallystick.count("of_nothing:build"),
    "formula": lambda: tallystick.formula("gpt2"),
    "formula by varying": lambda: tallystick.formula("of_nothing:build", vary={"d": "2:9"}),
    "formula of a function": lambda: tallystick.formula(lambda d: None, vary={"d": "2:9"}),
    "compare": lambda: tallystick.compare("gpt2", "gpt2-medium"),
    "reconcile": lambda: tallystick.reconcile("gpt2", "124M"),
    "check": lambda: tallystick.check("1 + 1 = 2"),
    "memory": lambda: tallystick.memory("gpt2"),
    "fit": lambda: tallystick.fit("gpt2", "8GB"),
    "fit_all": lambda: tallystick.fit_all("gpt2", "bf16"),
    "fit_engine": lambda: tallystick.fit_engine("gpt2", "vllm", ["h100"]),
    "serve": lambda: tallystick.serve("gpt2", engine="vllm", device="h100"),
    "compute": lambda: tallystick.compute("gpt2"),
    "ties": lambda: tallystick.ties("gpt2"),
    "ties of a module": lambda: tallystick.ties("of_torch:build"),
    "watch": watched,
    "assert_kept": lambda: tallystick.assert_kept(object(), object()),
    "assert_tied": iterated("assert_tied"),
    "retie": iterated("retie"),
    "check_optimizer": lambda: tallystick.check_optimizer(object(), object()),
    "to_pandas": lambda: tallystick.count("gpt2").to_pandas(),
    "load_pretrained": imported("tallystick.models"),
    "models.decoder": imported("tallystick.models.decoder"),
    "live.trainer": imported("tallystick.live.trainer"),
    "live.lightning": imported("tallystick.live.lightning"),
    "BadInput": lambda: None, "Entry": lambda: None, "Ledger": lambda: None, "Tie": lambda: None,
}
assert set(tallystick.__all__) <= set(functions), set(tallystick.__all__) - set(functions)
assert set(COMMANDS) <= {words[0] for words in commands}, set(COMMANDS) - {words[0] for words in commands}
answers = {
    "commands": {" ".join(words): said(words) for words in commands},
    "functions": {name: raised(call) for name, call in functions.items()},
    "torch": any(name == "torch" or name.startswith("torch.") for name in sys.modules),
}
json.dump(answers, sys.stdout)
"""

# The words, and the extra that the error must name; "" where the command answers.
COMMANDS = {
    "count gpt2": "",
    "count gpt2 --format html": "",
    "count of_torch:build": "torch",
    "count of_nothing:build": "torch",
    "count of_transformers:build": "hf",
    "count unknown.json": "hf",
    "count hf://org/name": "hub",
    "count s3://bucket/model": "stores",
    "formula gpt2 --steps": "",
    "formula of_nothing:build --vary d=2:9": "torch",
    "quiz mlp": "",
    "compare gpt2 gpt2-medium": "",
    "compare gpt2 of_torch:build": "torch",
    "reconcile gpt2 124M": "",
    "check notes.md --against gpt2": "",
    "memory gpt2": "",
    "memory gpt2 --sequence 256:1k --plot out.png": "plot",
    "fit gpt2 --device 8GB": "",
    "serve gpt2 --device 8GB": "",
    "compute gpt2": "",
    "ties gpt2": "",
    "ties of_torch:build": "torch",
    "survive": "survive",
    "survive of_torch:build": "survive",
    "explore gpt2 --no-browser": "web",
    "train --set preset=nano": "train",
    "experiment tying": "train",
    "generate folder --prompt a": "models",
    "evaluate folder notes.md": "models",
    "presets": "",
    "devices": "",
    "dtypes": "",
    "help fit": "",
    "count org/name": "hub",
    "fit gpt2": "",
}

FUNCTIONS = {
    "count of a module": "torch",
    "count of another": "torch",
    "formula by varying": "torch",
    "formula of a function": "torch",
    "ties of a module": "torch",
    "watch": "torch",
    "assert_kept": "torch",
    "assert_tied": "torch",
    "retie": "torch",
    "check_optimizer": "torch",
    "to_pandas": "pandas",
    "load_pretrained": "models",
    "models.decoder": "models",
    "live.trainer": "hf",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("bare")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    # of a copy: building writes beside what it builds
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(source)], check=True
    )
    (wheel,) = folder.glob("tallystick-*.whl")
    environment = folder / "empty"
    venv.create(environment, symlinks=True, with_pip=False)
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    zipfile.ZipFile(wheel).extractall(site)
    for name in CORE:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        (site / name).symlink_to(Path(spec.origin).parent, target_is_directory=True)
    (folder / "of_torch.py").write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(2, 2)\n")
    (folder / "of_transformers.py").write_text("from transformers import AutoModel\n\nbuild = AutoModel\n")
    (folder / "of_nothing.py").write_text("def build(d=2):\n    return None\n")
    (folder / "unknown.json").write_text('{"model_type": "no_such_type", "vocab_size": 9}')
    (folder / "notes.md").write_text("Token embedding: 50257 × 768 = 38,597,376\n")
    done = subprocess.run(
        [
            python,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, '')\n{DRIVER}",
            json.dumps([w.split() for w in COMMANDS]),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["torch"]
    return found


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_answers_or_names_the_extra_in_one_line(answers: Any, words: str):
    answer, extra = answers["commands"][words], COMMANDS[words]
    if not extra:
        assert answer == {"code": 0, "error": ""}
        return
    assert answer["code"] == 2
    assert answer["error"].count("\n") == 1
    assert f"pip install 'tallystick[{extra}]'" in answer["error"]
    assert "bug" not in answer["error"]


def test_a_function_answers_or_raises_bad_input_that_names_the_extra(answers: Any):
    for name, answer in answers["functions"].items():
        if name == "live.lightning":
            assert "pip install" in answer["error"]
            continue
        if name not in FUNCTIONS:
            assert answer == {"kinds": [], "error": ""}, name
            continue
        assert f"pip install 'tallystick[{FUNCTIONS[name]}]'" in answer["error"], (name, answer)
        assert "BadInput" in answer["kinds"], name
        assert "\n" not in answer["error"], name
    for name in ("retie", "to_pandas", "load_pretrained", "live.trainer", "live.lightning"):
        assert "ImportError" in answers["functions"][name]["kinds"], name


def test_each_optional_library_of_the_project_has_its_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for library in ("torch", "tokenizers", "transformers", "numpy", "safetensors", "huggingface_hub", "fsspec", "s3fs", "gcsfs",
                    "pandas", "matplotlib", "starlette", "uvicorn", "accelerate", "peft", "torchao"):  # fmt: skip
        extra = pip_install(library).partition("[")[2].partition("]")[0]
        assert any(one.replace(">", "=").split("=")[0] == library for one in extras[extra]), library
