"""A training run: prepare everything once, then train step by step and yield events.

    run = prepared(configured({"preset": "nano"}, {}, where="the call"))
    for event in run.events():
        print(event)

The run writes its checkpoints; the caller decides which events to show and to log.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tallystick.errors import BadInput
from tallystick.models.compiling import compiled
from tallystick.models.generation import generate
from tallystick.models.sampling import Sampling
from tallystick.sources.run_folder import LOG
from tallystick.training.checkpoints.checkpoint import (
    clear,
    latest,
    refuse_full,
    refuse_other,
    refuse_other_data,
    restore,
    save,
    writable,
)
from tallystick.training.config import TrainConfig
from tallystick.training.corpus.corpus import Tokens, corpus_of
from tallystick.training.groups import Groups
from tallystick.training.lock import locked
from tallystick.training.log import damage_in
from tallystick.training.memory_peak import Peak
from tallystick.training.model import config_of_model, decoder_of
from tallystick.training.optimizers import optimizers_of, refuse_missing
from tallystick.training.ranks import Ranks, ranks_of
from tallystick.training.schedule import rate
from tallystick.training.state import Event, RunState

SHORTEST = 1e-9  # seconds: a clock that does not advance gives no infinite rate


class Diverged(RuntimeError):
    """The loss or a gradient is NaN or infinite; the message names the step and the tensor."""


@dataclass
class Run(RunState):
    """Everything that a training run needs, ready to train."""

    groups: Groups
    peak: Peak
    torn: list[Path] = field(default_factory=list)  # incomplete checkpoints, which were not used
    notes: list[str] = field(default_factory=list)  # what the user should know before the first step
    held: ExitStack = field(default_factory=ExitStack)  # holds the lock of the run's folder
    _asked_to_stop: bool = False

    def close(self) -> None:
        """Release the folder for other processes; garbage collection of the run does so too."""
        self.held.close()

    def events(self) -> Iterator[Event]:
        """Train to the end, or until a signal asks to stop; save a checkpoint then."""
        config, progress = self.config, self.progress
        with self._listening():
            began, tokens = time.perf_counter(), 0
            while progress.step < config.steps:
                loss, norm = self._step()
                progress.step += 1
                tokens += config.batch * config.sequence
                if progress.step % config.log_every == 0 or progress.step == config.steps:
                    seconds = max(time.perf_counter() - began, SHORTEST)
                    value = self.ranks.mean(loss)
                    yield self._event("step", loss=value, norm=float(norm), rate=self._rate, speed=tokens / seconds)
                    began, tokens = time.perf_counter(), 0
                last = progress.step == config.steps
                if config.eval_every and (last or progress.step % config.eval_every == 0):
                    yield self._event("evaluated", **self.evaluate())
                    began, tokens = time.perf_counter(), 0
                if config.sample_every and progress.step % config.sample_every == 0:
                    yield self._event("sample", text=self.sample())
                stopping = self.ranks.any(self._asked_to_stop)
                if last or stopping or (config.save_every and progress.step % config.save_every == 0):
                    yield self._event("saved", path=str(save(self)))
                    began, tokens = time.perf_counter(), 0  # the speed counts training steps only
                if stopping and not last:
                    yield self._event("stopped")
                    return
            yield self._event("done")

    def _event(self, kind: str, **values: Any) -> Event:
        return Event(kind, self.progress.step, values)

    @property
    def _rate(self) -> float:
        """Learning rate of the last step taken."""
        return self.config.learning_rate * rate(self.config, self.progress.step - 1)

    def _step(self) -> tuple[Tensor, Tensor]:
        """Take one optimizer step; return this rank's mean loss and the gradients' norm."""
        config, parts = self.config, self.config.accumulate
        total = torch.zeros((), device=self.ranks.device)
        for part in range(parts):
            inputs, targets = self._batch(self.corpus.train, self.progress.step, part)
            with self.ranks.synchronising(self.model, part == parts - 1), self._precision():
                loss = self.model(inputs, targets, z_loss=config.z_loss, label_smoothing=config.label_smoothing) / parts
            loss.backward()
            total += loss.detach()
        parameters = list(self.decoder.parameters())
        norm = nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None])
        if not torch.isfinite(norm) or not torch.isfinite(total):
            raise Diverged(self._what_diverged(total))
        if config.clip:
            nn.utils.clip_grads_with_norm_(parameters, config.clip, norm)
        share = rate(config, self.progress.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return total, norm

    def evaluate(self) -> dict[str, float]:
        """Return the mean loss over the first validation batches, and bits per byte."""
        self.model.eval()
        total = torch.zeros((), device=self.ranks.device)
        held = self.corpus.validation.batches(self.config.batch, self.config.sequence)
        count = max(1, min(self.config.eval_batches, held))  # a text shorter than one batch is repeated in it
        for number in range(count):
            for part in range(self.config.accumulate):
                inputs, targets = self._batch(self.corpus.validation, number, part, shuffled=False)
                with torch.no_grad(), self._precision():
                    total += self.model(inputs, targets)
        self.model.train()
        self.ranks.settle(self.decoder)
        loss = self.ranks.mean(total / (count * self.config.accumulate))
        return {"loss": loss, "bits_per_byte": self.corpus.validation.bits_per_byte(loss)}

    def sample(self, tokens: int = 100) -> str:
        """Return text that the model generates after the config's prompt."""
        tokenizer, context = self.corpus.tokenizer, self.decoder.config.context
        prompt = tokenizer.encode(self.config.sample_prompt) or list(tokenizer.begin or tokenizer.between or (0,))
        prompt = prompt[1 - context :]
        (ids,) = generate(
            self.decoder,
            [prompt],
            tokens=min(tokens, context - len(prompt)),
            sampling=Sampling(temperature=0.8, top_k=200),
            vocabulary=tokenizer.size,
            seed=self.config.seed,
        )
        return tokenizer.decode(prompt + ids)

    def _batch(self, tokens: Tokens, number: int, part: int, *, shuffled: bool = True) -> tuple[Tensor, Tensor]:
        """Return this rank's rows of one part of a batch."""
        config = self.config
        seed = config.seed if shuffled else None
        inputs, targets = tokens.batch(
            number * config.accumulate + part, config.batch // config.accumulate, config.sequence, seed=seed
        )
        rows = self.ranks.share(len(inputs))
        return inputs[rows].to(self.ranks.device), targets[rows].to(self.ranks.device)

    def _precision(self) -> AbstractContextManager[Any]:
        if self.config.precision == "float32":
            return nullcontext()
        context: AbstractContextManager[Any] = torch.autocast(self.ranks.device.type, torch.bfloat16)
        return context

    def _what_diverged(self, loss: Tensor) -> str:
        """Return the step and the first non-finite tensor: the loss, or a parameter's gradient."""
        bad = [
            name
            for name, one in self.decoder.named_parameters()
            if one.grad is not None and not one.grad.isfinite().all()
        ]
        what = "the loss" if not torch.isfinite(loss) else f"the gradient of {bad[0]}" if bad else "the gradients' norm"
        return f"step {self.progress.step + 1}: {what} is not finite; the last checkpoint is from before"

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Let SIGTERM and Ctrl-C stop the run after its current step."""

        def ask(number: int, frame: object) -> None:
            self._asked_to_stop = True

        if threading.current_thread() is not threading.main_thread():  # Python allows signal handlers only there
            yield
            return
        before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def prepared(config: TrainConfig, *, resume: str = "never") -> Run:
    """Prepare and check ranks, data, model and optimizers, and restore a checkpoint if asked.

    Args:
        config: config of the run.
        resume: ``"never"`` starts a new run, and refuses a folder with checkpoints. ``"auto"``
            resumes from the newest complete checkpoint, if there is one. A path resumes from
            that checkpoint.

    Raises:
        BadInput: for anything that is wrong before the first step.
    """
    ranks = ranks_of(config.device, batch=config.batch // config.accumulate)
    out = Path(config.out)
    with ExitStack() as held:
        notes, start, torn = list[str](), None, list[Path]()
        with ranks.together():
            if ranks.first:
                notes = [note for note in (held.enter_context(locked(out)),) if note]
                writable(out)
                clear(out)
        with ranks.together():
            refuse_missing(config)
            if not config.pretrained:
                config_of_model(config)  # fail before any text is read
            start, torn = latest(out) if resume in ("never", "auto") else (Path(resume), [])
            if resume == "never" and (start or torn):
                raise BadInput(
                    f"{out} holds a run's checkpoints: resume with --resume auto, or choose another out",
                    code="unwritable",
                )
            if start is not None:
                refuse_other(config, start)
        run = _ready(config, ranks, start)
        if ranks.first and start is not None:
            notes += [note for note in (damage_in(out / LOG),) if note]
        run.torn, run.notes = torn, notes
        run.held = held.pop_all()
    return run


def _ready(config: TrainConfig, ranks: Ranks, start: Path | None) -> Run:
    """Return the run with data, model and optimizers, new or restored from a checkpoint."""
    with ranks.first_alone():
        corpus = corpus_of(
            config.data,
            tokenizer=config.tokenizer,
            validation=config.validation,
            folder=Path(config.tokens) if config.tokens else Path(config.out) / "data",
            sequence=config.sequence,
        )
    if start is not None:
        refuse_other_data(corpus, start)
    peak = Peak(ranks.device)
    decoder = decoder_of(config, corpus.tokenizer.size).to(ranks.device)
    decoder.recompute = config.recompute
    model = ranks.wrapped(decoder, config.sharding)
    optimizers, groups = optimizers_of(config, decoder)
    torch.manual_seed(config.seed + ranks.rank)  # for dropout
    called = compiled(model, ranks.device) if config.compile else model
    run = Run(config, ranks, corpus, decoder, called, optimizers, groups, peak)
    with ranks.together():
        if start is not None:
            restore(run, start)
        if ranks.first:
            refuse_full(run)
    return run
