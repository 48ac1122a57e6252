"""A run goes on from its own tensors alone: others are refused, and no pickle is run."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from hostile import mutations
from resumed_runs import begun, made, newest, resumed, sealed

__all__ = ["begun", "made"]  # fixtures


def state_of(config) -> Path:
    return next(newest(config).glob("state/*.safetensors"))


def metadata_of(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return file.metadata()


def rewrite_state(config, change):
    """Write the state anew with other tensors and slices, and give it the right digest."""
    path = state_of(config)
    tensors, metadata = load_file(path), metadata_of(path)
    slices = json.loads(metadata["DCP_SHARDING_INFO"])
    metadata["DCP_SHARDING_INFO"] = json.dumps(change(tensors, slices) or slices)
    save_file(tensors, path, metadata)
    sealed(newest(config))


NAME = "model.layers.0.attention.q_proj.weight"


def wide(tensors, slices):
    slices[NAME]["saved_offsets"] = [10**12, 0]


def beyond(tensors, slices):
    slices[NAME]["saved_offsets"] = [0, 10**40]


def negative(tensors, slices):
    slices[NAME]["saved_offsets"] = [-1, 0]


def many(tensors, slices):
    slices[NAME]["saved_offsets"] = [0] * 1000


def unsaid(tensors, slices):
    del slices[NAME]


def a_list(tensors, slices):
    return [1]


def cut(tensors, slices):
    tensors[NAME] = tensors[NAME][:5].clone()


def no_moment(tensors, slices):
    del tensors["optimizer.layers.0.attention.q_proj.weight.exp_avg"]


def one_more(tensors, slices):
    tensors["optimizer.layers.0.attention.q_proj.weight.more"] = torch.zeros(2)
    slices["optimizer.layers.0.attention.q_proj.weight.more"] = {"saved_offsets": [0]}


def scalar(tensors, slices):
    tensors[NAME] = torch.zeros(())
    slices[NAME] = {"saved_offsets": []}


def integers(tensors, slices):
    tensors[NAME] = tensors[NAME].to(torch.int64)


def of_nobody(tensors, slices):
    tensors["optimizer.a.b.exp_avg"] = torch.zeros(3)
    slices["optimizer.a.b.exp_avg"] = {"saved_offsets": [0]}


@pytest.mark.parametrize(
    "change",
    [wide, beyond, negative, many, unsaid, a_list, cut, no_moment, one_more, scalar, integers, of_nobody],
)
def test_tensors_that_are_not_those_of_the_run_are_refused(begun, change):
    rewrite_state(begun, change)
    assert isinstance(resumed(begun), str)


def test_a_state_is_refused_before_its_tensors_are_read(begun, monkeypatch):
    monkeypatch.setattr("tallystick.training.checkpoints.checkpoint.read_slices", None)
    for change in (wide, cut, no_moment, integers):
        rewrite_state(begun, change)
        assert isinstance(resumed(begun), str)


def test_any_state_and_random_numbers_with_the_right_digest_are_read(begun):
    for path in (state_of(begun), newest(begun) / "random-00000.safetensors"):
        content = path.read_bytes()
        length = 8 + int.from_bytes(content[:8], "little")
        for start in mutations(content[:length], most=20, by_commit=True):
            path.write_bytes(start + content[length:])
            sealed(newest(begun))
            resumed(begun)
        path.write_bytes(content)


def random_numbers(held):
    return {
        "none": {},
        "short": {"cpu": torch.zeros(3, dtype=torch.uint8)},
        "floats": {"cpu": torch.zeros(held["cpu"].shape)},
        "zeros": {"cpu": torch.zeros_like(held["cpu"])},
        "ones": {"cpu": torch.full_like(held["cpu"], 255)},
    }


@pytest.mark.parametrize("kind", ["none", "short", "floats", "zeros", "ones"])
def test_random_numbers_that_are_none_are_refused(begun, kind):
    path = newest(begun) / "random-00000.safetensors"
    save_file(random_numbers(load_file(path))[kind], path)
    sealed(newest(begun))
    assert isinstance(resumed(begun), str)


class Payload:
    """What runs as it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (str(self.canary),)


@pytest.mark.parametrize("name", [".metadata", "__0.metadata", "__0_0.distcp", "model.safetensors.index.json", "x.pt"])
@pytest.mark.parametrize("where", ["", "state"])
def test_no_pickle_in_a_checkpoint_is_read(begun, tmp_path, name, where):
    """torch.distributed.checkpoint unpickles `.metadata` where it reads files of its own; ours are
    safetensors.
    """
    canary = tmp_path / "canary"
    path = newest(begun) / where / name
    path.write_bytes(pickle.dumps(Payload(canary)))
    sealed(newest(begun))
    assert resumed(begun) == 4
    assert not canary.exists()
    pickle.loads(path.read_bytes())
    assert canary.exists()  # it would have been seen


def test_a_pickle_in_place_of_tensors_is_not_run(begun, tmp_path):
    canary = tmp_path / "canary"
    for path in (state_of(begun), newest(begun) / "random-00000.safetensors"):
        path.write_bytes(pickle.dumps(Payload(canary)))
        sealed(newest(begun))
        assert isinstance(resumed(begun), str)
    assert not canary.exists()
