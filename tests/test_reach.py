"""Nothing that stands in a file makes a process reach out: each reader and each model type, watched
by an audit hook.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import transformers

import tallystick
from fuzz import READERS
from repository import TESTS
from rotating import one_by_commit, some_by_commit

WATCHED = TESTS / "watched"
PACKAGE = Path(tallystick.__file__).parent
# Where Python's own code and that of packages lies.
INSTALLED = (*{*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, str(PACKAGE), str(WATCHED)},)

# Code that a hostile folder holds; each leaves a file behind where it is run.
CODE = "open('canary', 'w').close()\nclass E: pass\n"
MODULES = (
    "modeling_own",
    "configuration_own",
    "torch",
    "transformers",
    "json",
    "numpy",
    "timm",
    "kernels",
    "sitecustomize",
)

# Keys that lead to code, and change nothing that is counted.
LEADS: dict[str, Any] = {
    "auto_map": dict.fromkeys(("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM", "AutoBackbone"), "model--modeling_own.E"),
    "_name_or_path": "model",
    "name_or_path": "evil/repo",
    "custom_pipelines": {"text-generation": {"impl": "modeling_own.E", "pt": ["E"]}},
    "trust_remote_code": True,
    "code_revision": "main",
    "_commit_hash": "0" * 40,
    "_attn_implementation": "evil/kernels",
    "attn_implementation": {"": "evil/kernels:E"},
    "_experts_implementation": "evil/kernels",
    "use_kernels": True,
}  # fmt: skip
# Keys that change the model too, or make it impossible to build.
MORE: dict[str, Any] = {
    "backbone": "evil/repo",
    "use_timm_backbone": False,
    "use_pretrained_backbone": True,
    "backbone_config": None,
    "backbone_kwargs": {"model_type": "timm_backbone", "backbone": "hf_hub:evil/repo"},
    "quantization_config": {
        "quant_method": "gptq",
        "bits": 4,
        "dataset": "evil/repo",
        "modules_in_block_to_quantize": "x",
    },
    "base_model_name_or_path": "evil/repo",
    "pretrained_model_name_or_path": "model",
    "transformers_weights": "../model/x.safetensors",
    "dtype": "os.system",
    "torch_dtype": "load",
    "hidden_act": "__import__('os').system('touch canary')",
    "kernel_config": {"kernel_mapping": {"RMSNorm": "evil/kernels:E"}},
    "tokenizer_class": "modeling_own.E",
}


def planted(config: Mapping[str, Any], keys: Mapping[str, Any], *, parts: bool = False) -> dict[str, Any]:
    """A config with keys put into it and into each object within; or into those alone that are
    configs of parts.
    """
    inside = {
        key: planted(value, keys, parts=parts) if isinstance(value, Mapping) else value for key, value in config.items()
    }
    return inside if parts and "model_type" not in config else {**inside, **keys}


def watched(folder: Path, commands: list[list[str]]) -> tuple[list[tuple[int, str]], list[tuple[str, Any]]]:
    """Exit code and last words of each command, in one process, and what it did to the world."""
    log = folder.parent / "log"
    temporary = folder.parent / "tmp"
    temporary.mkdir()
    code = (
        "import contextlib, io, json, sys\n"
        "from tallystick.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):\n"
        "        code = main(words)\n"
        "    print(json.dumps([code, out.getvalue()]))\n"
    )
    paths = os.pathsep.join([str(WATCHED), str(PACKAGE.parent)])
    environment = {
        **os.environ,
        "PYTHONPATH": paths, "TALLYSTICK_WATCHED": str(log), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1",
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, json.dumps(commands)],
        cwd=folder, env=environment, input="y\n" * 100, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert not (folder / "canary").exists()
    return said, [step for step in _steps(log) if not _allowed(*step, temporary)]


def _steps(log: Path) -> list[tuple[str, Any]]:
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()]


def _allowed(what: str, of: Any, temporary: Path) -> bool:
    if what == "subprocess.Popen":
        return of[0] == sys.executable and "tallystick.sources.transformers_meta.process" in of[-1]
    places = INSTALLED if what == "run" else (str(temporary), os.devnull)
    return what in ("run", "write") and (isinstance(of, int) or os.path.abspath(of).startswith(places))


def hostile_folder(parent: Path) -> Path:
    """A folder with code under names that somebody imports."""
    folder = parent / "folder"
    (folder / "model").mkdir(parents=True)
    for inside in (folder, folder / "model"):
        for module in MODULES:
            (inside / f"{module}.py").write_text(CODE)
    return folder


# Of these one looks for torch and transformers itself; the others are forks, which have them.
ALONE = one_by_commit(["safetensors", "0"])


@pytest.mark.parametrize("name", READERS)
def test_a_reader_does_nothing_else(name: str, tmp_path: Path, request: pytest.FixtureRequest):
    if name not in ALONE:
        request.getfixturevalue("preloaded")
    reader = READERS[name]
    folder = hostile_folder(tmp_path)
    if reader.member:
        pytest.skip("a member of a file of which another reader has the whole")
    for content in reader.first(folder):
        (folder / reader.file).write_bytes(content)
    (folder / "config.json").exists() or (folder / "config.json").write_text(
        json.dumps(planted({"model_type": "mt5"}, LEADS))
    )
    source = str(folder if reader.of_folder else folder / reader.file)
    said, steps = watched(folder, [["count", source], ["ties", source], ["count", str(folder)]])
    assert [code for code, _ in said[:1]] == [0], said
    assert steps == []


def test_a_derivation_is_only_read(tmp_path: Path):
    folder = hostile_folder(tmp_path)
    (folder / "notes.md").write_text("__import__('os').system('touch canary') = 5\n50257 * 768 = 38,597,376\n")
    said, steps = watched(
        folder, [["check", "notes.md", "--against", "gpt2"], ["reconcile", "gpt2", "__import__('os')"]]
    )
    assert [code for code, _ in said] == [0, 2]
    assert steps == []


# Types made of two others; of a decoder that is none, transformers looks for code.
TWO = {
    "encoder-decoder": ("encoder", "bert", "decoder", "vit"),
    "vision-encoder-decoder": ("encoder", "vit", "decoder", "mt5"),
    "speech-encoder-decoder": ("encoder", "wav2vec2", "decoder", "vit"),
    "vision-text-dual-encoder": ("vision_config", "vit", "text_config", "encoder-decoder"),
    "rag": ("question_encoder", "dpr", "generator", "vit"),
}
TYPES = sorted(name for name in transformers.CONFIG_MAPPING if name not in ("timm_wrapper", "timm_backbone"))


@pytest.mark.parametrize("part", range(4))
def test_no_key_of_a_config_leads_elsewhere(part: int, tmp_path: Path, request: pytest.FixtureRequest):
    if str(part) not in ALONE:
        request.getfixturevalue("preloaded")
    folder = hostile_folder(tmp_path)
    taken = sorted({*some_by_commit(TYPES, 9), *TWO})[part::4]
    for model_type in taken:
        try:
            config = transformers.CONFIG_MAPPING[model_type]().to_dict()
        except Exception:  # its default cannot be made
            one, kind, other, its = TWO.get(model_type, ("encoder", "bert", "decoder", "vit"))
            config = {one: {"model_type": kind}, other: {"model_type": its}}
        for kind, keys in (("plain", {}), ("leads", LEADS), ("more", {**LEADS, **MORE})):
            values = planted({**config, "model_type": model_type}, keys, parts=kind == "leads")
            (folder / f"{model_type}-{kind}.json").write_text(json.dumps(values, default=str))
    commands = [
        ["count", f"{model_type}-{kind}.json", "--format", "json"]
        for model_type in taken
        for kind in ("plain", "leads", "more")
    ]
    said, steps = watched(folder, commands)
    assert steps == []
    for model_type, plain, leads, more in zip(taken, said[::3], said[1::3], said[2::3], strict=True):
        assert _parameters(plain) == _parameters(leads), model_type
        assert more[0] in (0, 2)
        assert more[0] == 0 or more[1].count("\n") == 1


def _parameters(said: tuple[int, str]) -> Any:
    return json.loads(said[1])["totals"] if said[0] == 0 else said[0]
