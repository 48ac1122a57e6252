"""The attributes of an answer have the names of its JSON's keys, and their values."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import pytest

import tallystick
from all_answers import ANSWERS
from tallystick.core.display import Displayed

# The text as it was written, the entries of weights, whether `sequences` or `dtypes` differ.
NOT_IN_JSON = {"Check": {"lines"}, "Memory": {"held"}, "Sweep": {"along"}}


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_key_is_an_attribute_of_the_same_value(kind):
    answer = ANSWERS[kind]()
    for key, value in answer.to_dict().items():
        same(getattr(answer, key), value, f"{kind}.{key}")


@pytest.mark.parametrize("kind", sorted(ANSWERS.keys() - {"Ledger"}))
def test_each_field_is_a_key(kind):
    answer = ANSWERS[kind]()
    unsaid = {field.name for field in fields(answer)} - answer.to_dict().keys()
    assert unsaid <= NOT_IN_JSON.get(kind, set())


def test_the_rows_of_a_ledger():
    ledger = tallystick.count("gpt2")
    for by in ("role", "layer", "tensor", "dtype"):
        assert ledger.to_dict(by=by)["rows"] == ledger.rows(by)


def same(ours, value, where):
    """Assert that an attribute is what the JSON says, item by item."""
    if isinstance(ours, Mapping):
        assert ours.keys() == value.keys(), where
        for key in value:
            same(ours[key], value[key], f"{where}.{key}")
    elif isinstance(value, dict):
        assert is_dataclass(ours) or hasattr(ours, "_fields"), where
        for key in value:
            same(getattr(ours, key), value[key], f"{where}.{key}")
        if not isinstance(ours, Displayed):  # the answer inside of Fit is shown in part
            names = ours._fields if hasattr(ours, "_fields") else [field.name for field in fields(ours)]
            assert set(names) <= value.keys(), where
    elif isinstance(value, list):
        assert len(ours) == len(value), where
        for place, (one, item) in enumerate(zip(ours, value, strict=True)):
            same(one, item, f"{where}[{place}]")
    else:
        assert (None if ours == "" else ours) == (None if value == "" else value), where
