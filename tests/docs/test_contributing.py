"""CONTRIBUTING's file tree is the real one, and its example of an architecture works by being
saved.
"""

import re
import runpy
import shutil

import pytest

import tallystick
from repository import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_tree_is_that_of_now():
    """`make tree` writes it."""
    tree = runpy.run_path(str(ROOT / "docs" / "site" / "tree.py"))
    assert tree["with_tree"](TEXT) == TEXT
    assert "ledger.py" in TEXT
    undescribed = [
        path for path in (*tree["PACKAGE"].rglob("*.py"), *tree["SUPPORT"].glob("*.py")) if not tree["first_line"](path)
    ]
    assert not undescribed


@pytest.fixture
def toy(tmp_path, add_architectures):
    """Saves the example, one text in it replaced by another, and counts configs of its type."""
    example = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert example
    forget = add_architectures(tmp_path, "toy")

    def save(written="", instead=""):
        assert written in example[1]
        (tmp_path / "toy.py").write_text(example[1].replace(written, instead))
        forget()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)  # two texts of one size, within a second
        return lambda **values: tallystick.count({"model_type": "toy", **values})

    return save


def test_the_example_architecture_needs_one_file_and_no_other_edit(toy):
    layer = 4 * 512 * 512 + 3 * 512 * 2048 + 2 * 512
    assert toy()().total == 32000 * 512 + 8 * layer + 512


def test_what_each_declaration_of_the_example_buys(toy):
    """As its comments say: with it, and without."""
    labels = {"architectures": ["ToyForSequenceClassification"], "num_labels": 3}
    head, layer = 32000 * 512, 4 * 512 * 512 + 3 * 512 * 2048 + 2 * 512
    count = toy()
    assert count(**labels).total == count().total + 3 * 512
    assert count(n_layers=2).total == count().total - 6 * layer
    assert count(tie_word_embeddings=False).total == count().total + head
    memory, compute = tallystick.memory(count(), sequence=64), tallystick.compute(count(), sequence=64)
    assert memory.to_dict()["kv_cache_bytes"] == 2 * 8 * 512 * 64 * 4
    assert compute.complete

    assert toy('"ToyForCausalLM",')(**labels).total == count().total
    assert toy('aliases={"n_layers": "num_hidden_layers"},')(n_layers=2).total == count().total
    count = toy("kit.attention(c, heads)", "kit.attention(c, heads).replace(heads=None)")
    assert tallystick.memory(count(), sequence=64).to_dict()["kv_cache_bytes"] == 0
    assert not tallystick.compute(count(), sequence=64).complete
    without = tallystick.memory(toy(", c.hidden_act")(), sequence=64)
    assert any("activations are not counted" in note for note in without.notes)
    assert not any("activations are not counted" in note for note in memory.notes)
