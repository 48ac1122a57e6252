"""CONTRIBUTING's file tree is the real one, and its example of an architecture works by being saved."""

import re
import sys
from pathlib import Path

import tallystick
from tallystick import architectures
from tallystick.registry import REGISTRY

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_tree_names_every_file():
    tree = re.search(r"src/tallystick/\n(.*?)\ntests/", TEXT, re.DOTALL)
    assert tree
    named = set(re.findall(r"^ +(\w+\.py) ", tree[1], re.MULTILINE))
    package = Path(tallystick.__file__).parent
    real = {
        path.name
        for path in package.rglob("*.py")
        if path.parent.name not in ("architectures", "families") and path.read_text(encoding="utf-8").count("\n") > 2
    }
    shared = {"_llama_like.py", "aliases.py"}
    assert real <= named | shared
    assert named <= real | shared


def test_the_example_architecture_needs_one_file_and_no_other_edit(tmp_path, monkeypatch):
    example = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert example
    (tmp_path / "toy.py").write_text(example[1])
    monkeypatch.setattr(architectures, "__path__", [*architectures.__path__, str(tmp_path)])
    try:
        ledger = tallystick.count({"model_type": "toy"})
    finally:
        REGISTRY.pop("toy", None)
        sys.modules.pop("tallystick.architectures.toy", None)
    layer = 4 * 512 * 512 + 3 * 512 * 2048 + 2 * 512
    assert ledger.total == 32000 * 512 + 8 * layer + 512
