"""The page of which presets tie: what would be written now, and what others say of some of them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from repository import ROOT
from tied_presets import models, page, picture


def test_the_page_and_its_picture_are_what_would_be_written():
    assert (ROOT / "docs" / "tied-presets.md").read_text(encoding="utf-8") == page()
    assert (ROOT / "docs" / "tied-presets.svg").read_text(encoding="utf-8") == picture()


@pytest.mark.parametrize(
    ("name", "tied", "matrix"),
    [
        ("gpt2", True, 50257 * 768),
        ("llama-3.2-1b", True, 128256 * 2048),
        ("llama-3.1-8b", False, 128256 * 4096),
        ("qwen2.5-3b", True, 151936 * 2048),
        ("qwen2.5-7b", False, 152064 * 3584),
        ("deepseek-v3", False, 129280 * 7168),
    ],
)
def test_models_tie_as_their_configs_say(name, tied, matrix):
    (one,) = (one for one in models() if one.name == name)
    assert (one.tied, one.matrix) == (tied, matrix)


def test_each_model_has_a_mark():
    marks = list(ElementTree.fromstring(picture()).iter("{http://www.w3.org/2000/svg}title"))
    assert len(marks) == len(models()) + 2  # and two in the legend
