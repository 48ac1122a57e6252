"""Checkpoints of a run: whole or not there at all, and known to be whole.

    run/checkpoints/step-00000200/
        state/                   the decoder's tensors and what the optimizers keep of each, a slice of each per rank
        random-00000.safetensors the state of one rank's random numbers
        progress.json            the step, and the config of the run
        whole.json               the digest of each file above

A folder is written beside its name, its files are flushed to the disk, and then it is renamed. One whose files do not
have the digests that it says is torn, by a broken disk or a copy, and the one before it is used. The tensors are
written and read by `torch.distributed.checkpoint`, so that another number of ranks can go on with them, in safetensors:
nothing in the folder is a pickle, and nothing that is read is executed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed import checkpoint as sharded

from tallystick.errors import BadInput
from tallystick.sources.files import read_json
from tallystick.sources.runs import PROGRESS
from tallystick.training.config import TrainConfig

if TYPE_CHECKING:
    from tallystick.training.run import Run

FOLDER = "checkpoints"
# What may change between a run and its going on: it decides no weight.
FREE = frozenset(
    {"out", "tokens", "save_every", "keep", "eval_every", "eval_batches", "sample_every", "sample_prompt", "log_every"}
    | {"tensorboard", "wandb", "device", "sharding", "compile"}
)
STATE, WHOLE = "state", "whole.json"


@dataclass
class Progress:
    """How far a run has come."""

    step: int = 0  # steps taken; the data of the next follows from it


def save(run: Run) -> Path:
    """Write a checkpoint of a run as it stands, and drop those beyond the newest `keep`.

    Raises:
        BadInput: where the disk is full or cannot be written; the checkpoints that are there stay.
    """
    folder = Path(run.config.out) / FOLDER
    final = folder / f"step-{run.progress.step:08d}"
    partial = folder / f".{final.name}.partial"
    ranks = run.ranks
    try:
        if ranks.first:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
        ranks.wait()
        with warnings.catch_warnings():  # one process alone is what was meant
            warnings.filterwarnings("ignore", "torch.distributed is disabled")
            writer = sharded.HuggingFaceStorageWriter(str(partial / STATE), save_distributed=True)
            sharded.save(_tensors(run.decoder, run.optimizers), storage_writer=writer)
        _save_file(_random(ranks.device), partial / f"random-{ranks.rank:05d}.safetensors")
        ranks.wait()
        if ranks.first:
            values = {**asdict(run.progress), "ranks": ranks.count, "config": asdict(run.config)}
            (partial / PROGRESS).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
            files = sorted(path for path in partial.rglob("*") if path.is_file())
            digests = {path.relative_to(partial).as_posix(): _digest(path) for path in files}
            (partial / WHOLE).write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
            for path in (*partial.rglob("*"), partial):
                _flush(path)
            shutil.rmtree(final, ignore_errors=True)
            partial.rename(final)
            _flush(folder)
            for old in checkpoints(Path(run.config.out))[run.config.keep :]:
                shutil.rmtree(old, ignore_errors=True)
        ranks.wait()
    except (OSError, RuntimeError, sharded.CheckpointException) as error:  # the last is no Exception
        shutil.rmtree(partial, ignore_errors=True)
        raise BadInput(f"{final} could not be written: {_why(error)}; what was saved before stays") from None
    return final


def _why(error: BaseException) -> str:
    """In one line; of several ranks' reasons the first."""
    if isinstance(error, sharded.CheckpointException):
        error = next(iter(error.failures.values()))[0]
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def writable(out: Path) -> None:
    """Refuse a folder that cannot be written before anything is computed for it, and clear what was cut off in it."""
    for partial in (out / FOLDER).glob(".step-*.partial"):  # of a save that was killed; it may be what fills the disk
        shutil.rmtree(partial, ignore_errors=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out) as probe:
            probe.write(b"0" * 4096)
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror or error}") from None


def refuse_full(run: Run) -> None:
    """Refuse a disk without room for all that a run will keep on it at once: the checkpoints, and one more as it is written."""
    config, out = run.config, Path(run.config.out)
    weights = sum(one.numel() * one.element_size() for one in run.decoder.parameters())
    moments = 1 if config.optimizer == "muon" else 2  # at least
    left = config.steps - run.progress.step
    saves = min(left, -(-left // config.save_every) if config.save_every else 1)
    more = min(saves, max(1, config.keep + 1 - len(checkpoints(out))))
    needed, free = more * (1 + moments) * weights + weights, shutil.disk_usage(out).free
    if free < needed:
        raise BadInput(
            f"{out} has {free:,} bytes free, and this run will write {needed:,} at least for checkpoints and the model:"
            " make room, set keep lower, or name another out"
        )


def refuse_other(config: TrainConfig, path: Path) -> None:
    """Refuse to go on with a run whose config said something else of what decides its numbers."""
    if not path.is_dir():
        raise BadInput(f"there is no checkpoint {path}")
    if not is_whole(path):
        raise BadInput(f"{path} is no whole checkpoint: its files are not those that were written")
    said, mine = (_flat(one) for one in (read_json(path / PROGRESS)["config"], asdict(config)))
    for key in (*mine, *said):
        if key not in FREE and said.get(key) != mine.get(key):
            raise BadInput(f"{path} is of a run with {key} = {said.get(key)!r}, and this one says {mine.get(key)!r}")


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """With the model's keys as ``model.KEY``."""
    model = {f"model.{key}": value for key, value in config["model"].items()}
    return {**{key: value for key, value in config.items() if key != "model"}, **model}


def checkpoints(out: Path) -> list[Path]:
    """Those of a run, the newest first."""
    return sorted((out / FOLDER).glob("step-*"), reverse=True)


def latest(out: Path) -> tuple[Path | None, list[Path]]:
    """The newest checkpoint that is whole, and the torn ones that are newer."""
    torn = list[Path]()
    for path in checkpoints(out):
        if is_whole(path):
            return path, torn
        torn.append(path)
    return None, torn


def is_whole(path: Path) -> bool:
    """Whether every file of a checkpoint is there, as it was written."""
    try:
        digests = read_json(path / WHOLE)
        return (
            isinstance(digests, dict)
            and PROGRESS in digests
            and all(_digest(path / name) == digest for name, digest in digests.items())
        )
    except (BadInput, OSError):
        return False


def restore(run: Run, path: Path) -> None:
    """Make a run what it was when a checkpoint was written: weights, optimizers, random numbers, step."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        reader = sharded.HuggingFaceStorageReader(str(path / STATE))
        stored = reader.read_metadata().state_dict_metadata
        _make_room(run.decoder, run.optimizers, {name: tuple(kept.size) for name, kept in stored.items()})
        tensors = _tensors(run.decoder, run.optimizers)
        if tensors.keys() != stored.keys():
            other = sorted(tensors.keys() ^ stored.keys())
            raise BadInput(f"{path} is of another model: {other[0]} is in only one of them, and {len(other) - 1} more")
        sharded.load(tensors, storage_reader=reader)
    run.progress.step = read_json(path / PROGRESS)["step"]
    mine = path / f"random-{run.ranks.rank:05d}.safetensors"
    if mine.exists():  # a rank that was not there before begins with its own seed
        _set_random(mine)


def _tensors(decoder: nn.Module, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Every tensor of the state by name; those of the optimizers after the parameter's name."""
    names = {parameter: name for name, parameter in decoder.named_parameters()}  # a tied one once
    tensors = {f"model.{name}": parameter.detach() for parameter, name in names.items()}
    for optimizer in optimizers:
        for parameter, kept in optimizer.state.items():
            for key, value in kept.items():
                tensors[f"optimizer.{names[parameter]}.{key}"] = value
    return tensors


def _make_room(
    decoder: nn.Module, optimizers: list[torch.optim.Optimizer], stored: Mapping[str, tuple[int, ...]]
) -> None:
    """Give optimizers that have not stepped yet the tensors that a checkpoint holds for them, to be filled."""
    parameters = dict(decoder.named_parameters())
    owner = {
        id(one): optimizer for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]
    }
    for name, shape in stored.items():
        kind, _, rest = name.partition(".")
        of, _, key = rest.rpartition(".")
        if kind == "optimizer" and of in parameters and id(parameters[of]) in owner:
            parameter = parameters[of]
            like = torch.zeros_like(parameter) if shape == tuple(parameter.shape) else torch.zeros(shape)
            owner[id(parameter)].state[parameter][key] = like.detach()


def _random(device: torch.device) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def _set_random(path: Path) -> None:
    from safetensors.torch import load_file

    states = load_file(path)
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _save_file(tensors: dict[str, Tensor], path: Path) -> None:
    from safetensors.torch import save_file

    save_file(tensors, path)


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _flush(path: Path) -> None:
    """Have the disk hold what was written: a rename must not come before it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
