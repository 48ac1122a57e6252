"""Checkpoints of a run: written atomically, verified by digests, for any number of ranks.

    run/checkpoints/step-00000200/
        state/                   decoder tensors and optimizer state, in slices per rank
        random-00000.safetensors the random number state of one rank
        progress.json            the step, and the config of the run
        whole.json               the digest of each file above

A checkpoint is written to a temporary folder, flushed to the disk, and then renamed. If a file
does not match its digest, after a disk error or an incomplete copy, the checkpoint is torn and
the one before it is used. Tensors are in safetensors (see `slices`), so another number of ranks
can resume. Nothing in the folder is a pickle, and nothing that is read is executed. What the
files claim is checked before it is used.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from tallystick.errors import BadInput, quoted
from tallystick.files.atomic import flush_to_disk
from tallystick.formats.safetensors import read_header
from tallystick.sources.run_folder import MODEL, PROGRESS
from tallystick.training.checkpoints.progress import flat, read_progress, write_progress
from tallystick.training.checkpoints.slices import Stored, read_slices, stored_in, write_slices
from tallystick.training.config import TrainConfig
from tallystick.training.corpus.corpus import Corpus
from tallystick.training.optimizers import kept_by
from tallystick.training.state import RunState
from tallystick.training.wholeness import refuse_torn, seal

FOLDER = "checkpoints"
# Keys that may change when a run resumes: they affect no weight.
FREE = frozenset(
    {"out", "tokens", "save_every", "keep", "eval_every", "eval_batches", "sample_every", "sample_prompt", "log_every"}
    | {"tensorboard", "wandb", "device", "sharding", "compile"}
)
STATE = "state"
_NAME = re.compile(r"step-([0-9]{8,12})")  # other names are not read, counted or removed
_PARTIAL_MODEL = re.compile(rf"\.{MODEL}\.[0-9a-f]{{8}}(\.old)?")  # temporary names of `atomic_folder`
_TORCH = (OSError, RuntimeError, ValueError, SafetensorError)


def save(run: RunState) -> Path:
    """Write a checkpoint of a run, and remove old ones beyond the newest `keep`.

    Returns:
        The checkpoint's folder.

    Raises:
        BadInput: if the disk is full or not writable; existing checkpoints stay.
    """
    folder = Path(run.config.out) / FOLDER
    final = folder / f"step-{run.progress.step:08d}"
    partial = folder / f".{final.name}.partial"
    ranks = run.ranks
    try:
        with ranks.together():
            if ranks.first:
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(parents=True)
        with ranks.together():
            write_slices(_tensors(run.decoder, run.optimizers), partial / STATE, ranks.rank)
            _save_file(_random(ranks.device), partial / f"random-{ranks.rank:05d}.safetensors")
        with ranks.together():
            if ranks.first:
                write_progress(partial, run.progress, run.config, run.corpus, ranks.count)
                seal(partial)
                for path in (*partial.rglob("*"), partial):
                    flush_to_disk(path)
                shutil.rmtree(final, ignore_errors=True)
                partial.rename(final)
                flush_to_disk(folder)
                _drop_old(run)
    except BadInput:  # BadInput is a ValueError, which _TORCH includes
        shutil.rmtree(partial, ignore_errors=True)
        raise
    except _TORCH as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise BadInput(
            f"{final} could not be written: {_why(error)}; earlier checkpoints are kept", code="unwritable"
        ) from None
    return final


def _drop_old(run: RunState) -> None:
    """Remove all but the newest `keep`; later steps belong to another run and are left alone."""
    mine = [path for path in checkpoints(Path(run.config.out)) if step_in(path) <= run.progress.step]
    for old in mine[run.config.keep :]:
        shutil.rmtree(old, ignore_errors=True)


def _why(error: Exception) -> str:
    """Return an error in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def writable(out: Path) -> None:
    """Raise BadInput if a folder is not writable, before anything is computed for it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out) as probe:
            probe.write(b"0" * 4096)
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror or error}", code="unwritable") from None


def clear(out: Path) -> None:
    """Remove what killed saves left behind. The folder must be locked: a save may be running."""
    for partial in (out / FOLDER).glob(".step-*.partial"):
        shutil.rmtree(partial, ignore_errors=True)
    for model in out.glob(f".{MODEL}.*"):  # of a run killed while it saved its model; it is saved again
        if _PARTIAL_MODEL.fullmatch(model.name):
            shutil.rmtree(model, ignore_errors=True)


def refuse_full(run: RunState) -> None:
    """Raise BadInput if the disk has no room for the checkpoints to keep and one being written."""
    config, out = run.config, Path(run.config.out)
    weights = sum(one.numel() * one.element_size() for one in run.decoder.parameters())
    moments = 1 if config.optimizer == "muon" else 2  # moments per weight, at least
    left = config.steps - run.progress.step
    saves = min(left, -(-left // config.save_every) if config.save_every else 1)
    more = min(saves, max(1, config.keep + 1 - len(checkpoints(out))))
    needed, free = more * (1 + moments) * weights + weights, shutil.disk_usage(out).free
    if free < needed:
        raise BadInput(
            f"{out} has {free:,} bytes free, but this run needs at least {needed:,} for checkpoints and the"
            " model: free space, lower keep, or choose another out",
            code="unwritable",
        )


def refuse_other(config: TrainConfig, path: Path) -> None:
    """Raise BadInput if a checkpoint's config differs in a key that affects the results."""
    if not path.is_dir():
        raise BadInput(f"there is no checkpoint {path}", code="not-found")
    try:
        refuse_torn(path, PROGRESS)
    except BadInput as error:
        raise BadInput(f"{path} is not a complete checkpoint: {error}", code=error.code) from None
    progress, said = read_progress(path)
    mine = flat(asdict(config))
    for key in (*mine, *said):
        if key not in FREE and said.get(key) != mine.get(key):
            raise BadInput(
                f"{path} is from a run with {quoted(key)[1:-1]} = {quoted(said.get(key))}, but this run has"
                f" {quoted(mine.get(key))}",
                code="mismatch",
            )
    if progress.step > config.steps:
        raise BadInput(f"{path} is at step {progress.step:,}, but the run has {config.steps:,} steps", code="mismatch")


def refuse_other_data(corpus: Corpus, path: Path) -> None:
    """Raise BadInput if a checkpoint was trained on other tokens."""
    said = read_progress(path)[0].data
    for what, (tokens, digest) in corpus.identity.items():
        before = said.get(what)
        if before not in (None, [tokens, digest]):  # None: written by an older version
            how = (
                f"{before[0]:,}, but there are {tokens:,} now" if before[0] != tokens else f"{tokens:,}, but others now"
            )
            raise BadInput(
                f"{path} is from a run on other data: {what} had {how}; restore them, or choose another out",
                code="mismatch",
            )


def checkpoints(out: Path) -> list[Path]:
    """Return a run's checkpoints, newest first by the step in their names, not by file time."""
    found = [path for path in (out / FOLDER).glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(found, key=step_in, reverse=True)


def step_in(path: Path) -> int:
    """Return the step in a checkpoint's name."""
    return int(path.name.removeprefix("step-"))


def latest(out: Path) -> tuple[Path | None, list[Path]]:
    """Return the newest complete checkpoint, and the torn ones that are newer."""
    torn = list[Path]()
    for path in checkpoints(out):
        if is_whole(path):
            return path, torn
        torn.append(path)
    return None, torn


def is_whole(path: Path) -> bool:
    """Return whether all files of a checkpoint match their digests and its name the step."""
    try:
        refuse_torn(path, PROGRESS)
        return read_progress(path)[0].step == step_in(path)
    except (BadInput, OSError):
        return False


def restore(run: RunState, path: Path) -> None:
    """Restore weights, optimizer state, random state and step from a checkpoint.

    Args:
        run: a prepared run, changed in place.
        path: folder of a complete checkpoint.

    Raises:
        BadInput: if the tensors are not this run's, before memory is allocated for them.
    """
    stored = stored_in(path / STATE)
    _make_room(run.decoder, run.optimizers, stored)
    tensors = _tensors(run.decoder, run.optimizers)
    if tensors.keys() != stored.keys():
        other = sorted(tensors.keys() ^ stored.keys())
        raise BadInput(
            f"{path} is from another model: {quoted(other[0])} and {len(other) - 1} more are in only one of them",
            code="mismatch",
        )
    for name, tensor in tensors.items():
        mine = Stored(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        if stored[name] != mine:
            raise BadInput(
                f"{path} is from another model: {name} is {_words(stored[name])} there, but {_words(mine)} in this run",
                code="mismatch",
            )
    try:
        read_slices(tensors, path / STATE)
        random = path / f"random-{run.ranks.rank:05d}.safetensors"
        if random.exists():  # a rank that is new keeps its own seed
            _set_random(random)
    except BadInput:
        raise
    except _TORCH as error:
        raise BadInput(f"{path} cannot be read: {_why(error)}", code="malformed") from None
    run.progress.step = read_progress(path)[0].step


def _words(one: Stored) -> str:
    return f"{one.dtype} of shape {quoted(list(one.shape))}"


def _tensors(decoder: nn.Module, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return all state tensors by name; optimizer state is named after its parameter."""
    names = {parameter: name for name, parameter in decoder.named_parameters()}  # a tied one once
    tensors = {f"model.{name}": parameter.detach() for parameter, name in names.items()}
    for optimizer in optimizers:
        for parameter, kept in optimizer.state.items():
            for key, value in kept.items():
                tensors[f"optimizer.{names[parameter]}.{key}"] = value
    return tensors


def _make_room(decoder: nn.Module, optimizers: list[torch.optim.Optimizer], stored: dict[str, Stored]) -> None:
    """Allocate the state of optimizers that have not stepped yet, to be filled from a checkpoint.

    A checkpoint has all of a parameter's state tensors or none, as for a parameter without
    gradient. Their sizes are the parameter's, whatever the checkpoint says.
    """
    names = {parameter: name for name, parameter in decoder.named_parameters()}
    for optimizer in optimizers:
        for parameter in (one for group in optimizer.param_groups for one in group["params"]):
            kept = kept_by(optimizer, parameter)
            if any(f"optimizer.{names[parameter]}.{key}" in stored for key in kept):
                optimizer.state[parameter].update(kept)


def _random(device: torch.device) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def _set_random(path: Path) -> None:
    from safetensors.torch import load_file

    held = {one.name: (one.dtype, one.shape) for one in read_header(path).tensors}
    if held.get("cpu") != ("uint8", tuple(torch.get_rng_state().shape)):
        raise BadInput(f"{path} holds no random-number state", code="malformed")
    states = load_file(path)
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _save_file(tensors: dict[str, Tensor], path: Path) -> None:
    from safetensors.torch import save_file

    save_file(tensors, path)
