"""Each attack of `attacks/` is answered as its file says: nothing runs, nothing is asked, in
bounded time and memory.

Of attacks that are alike and take seconds each commit tries another, and of all others half.
transformers builds in a fork of a process that has imported it, but for a long build and another
attack by commit, whose time and memory are measured.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from repository import ROOT
from rotating import one_by_commit, some_by_commit

ATTACKS = ROOT / "attacks"
# A slow processor reaches this limit before the others.
OUT_OF_TIME = re.compile(r"takes more than \d+ seconds of CPU time$|needs more than \d+ seconds to build it$")


def _run_file():
    spec = importlib.util.spec_from_file_location("attacks_run", ATTACKS / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["attacks_run"] = module
    spec.loader.exec_module(module)
    return module


attacks = _run_file()


LONG_BUILDS = ["config_many_labels", "config_of_ten_thousand_blocks"]
ALIKE = (
    LONG_BUILDS,
    ["derivation_many_starts", "derivation_parentheses", "derivation_unclosed"],
    ["index_many_files", "pickle_many_modules", "tokenizer_many_lists"],
    ["safetensors_holes", "safetensors_many_names", "safetensors_many_shapes", "safetensors_many_texts",
     "safetensors_overlaps"],
)  # fmt: skip
LEFT_OUT = {name for alike in ALIKE for name in {*alike} - {*one_by_commit(alike)}}
BUILD = [name for name in attacks.names() if getattr(attacks.load(name), "BUILDS", False)]
OTHERS = [name for name in attacks.names() if name not in BUILD]
TAKEN = [
    name for name in (*some_by_commit(BUILD, 4), *some_by_commit(OTHERS, len(OTHERS) // 2)) if name not in LEFT_OUT
]
BUILDING = [name for name in TAKEN if name in BUILD]
BRIEF_BUILDS = [name for name in BUILDING if name not in LONG_BUILDS]
IN_A_FORK = {*BRIEF_BUILDS} - {*one_by_commit(BRIEF_BUILDS)} if sys.platform == "linux" else set()


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """What the command line does when it reads nothing."""
    return attacks.run(["--version"], tmp_path_factory.mktemp("start"))


def _inside(folder: Path) -> dict[str, tuple[int, int] | str]:
    """Each file, folder and link, by what would tell that it was written to."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in folder.rglob("*")
    }  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_attack(name: str, tmp_path: Path, start, request: pytest.FixtureRequest):
    if name in IN_A_FORK:
        request.getfixturevalue("preloaded")
    attack = attacks.load(name)
    words = attack.attack(tmp_path)
    before = _inside(tmp_path)
    outcome = attacks.run(words, tmp_path)
    assert _inside(tmp_path) == before
    assert not outcome.asked
    if outcome.code == 0:
        assert attack.ANSWER in outcome.output
        assert outcome.errors == ""
    else:
        assert outcome.code == 2, outcome
        assert outcome.output == ""
        assert outcome.errors.startswith("tallystick: ")
        assert outcome.errors.count("\n") == 1
        assert attack.ANSWER in outcome.errors or OUT_OF_TIME.search(outcome.errors)
    if name not in IN_A_FORK:  # whose own time and memory nobody sees
        builds = name in BUILDING
        assert outcome.seconds < start.seconds + attacks.SECONDS + (attacks.IMPORTING if builds else 0)
        memory = attacks.BUILDING if builds else attacks.MEMORY
        assert outcome.memory < start.memory + memory + getattr(attack, "HEADER", 0)
