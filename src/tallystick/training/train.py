"""Train a model from a config: plan, train, log, and save the result for transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tallystick.arguments import named
from tallystick.errors import BadInput
from tallystick.files.atomic import atomic_folder
from tallystick.models.checkpoints.saving import write_decoder
from tallystick.models.decoder import Decoder
from tallystick.sources.run_folder import MODEL
from tallystick.training.config import TrainConfig
from tallystick.training.log import logging, refuse_missing
from tallystick.training.plan import Plan, plan_of
from tallystick.training.run import Run, prepared
from tallystick.training.state import Event


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    kind: str  # done | stopped
    step: int
    loss: float | None  # of the last logged step
    validation_loss: float | None
    bits_per_byte: float | None
    peak_bytes: int | None  # peak of this rank's memory, less the use before; None if unknown
    predicted_bytes: int | None
    saved: str | None  # the newest checkpoint
    model: str | None  # folder of the trained decoder

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@named
def train(
    config: TrainConfig,
    *,
    resume: str = "never",
    planned: Callable[[Plan], Callable[[Event], None] | None] | None = None,
) -> Outcome:
    """Train to the end, or until SIGTERM or Ctrl-C.

    Args:
        config: config of the run.
        resume: see `prepared`.
        planned: called with the plan before the first step, on the first rank only. If it
            returns a function, that is called with each event.

    Returns:
        How the run ended, its losses, and the folder of the trained decoder.

    Raises:
        BadInput: for anything that is wrong before the first step.
        Diverged: if the loss or a gradient becomes NaN or infinite.
    """
    refuse_missing(config)
    run = prepared(config, resume=resume)
    try:
        return _trained(run, planned)
    finally:
        run.close()


def _trained(run: Run, planned: Callable[[Plan], Callable[[Event], None] | None] | None) -> Outcome:
    config = run.config
    plan = plan_of(run)
    last: dict[str, Event] = {}
    if not run.ranks.first:
        for event in run.events():
            last[event.kind] = event
    else:
        shown = planned(plan) if planned is not None else None
        with logging(config, run.progress.step) as write:
            for event in run.events():
                event_with_mfu = _with_mfu(event, plan)
                last[event.kind] = event_with_mfu
                write(event_with_mfu)
                if shown is not None:
                    shown(event_with_mfu)
    kind = "done" if "done" in last else "stopped"
    model = _export(run) if kind == "done" else None
    step, evaluated = last.get("step"), last.get("evaluated")
    return Outcome(
        kind,
        run.progress.step,
        step.values["loss"] if step else None,
        evaluated.values["loss"] if evaluated else None,
        evaluated.values["bits_per_byte"] if evaluated else None,
        run.peak.bytes,
        plan.predicted.total_bytes if plan.predicted else None,
        last["saved"].values["path"] if "saved" in last else None,
        model,
    )


def _with_mfu(event: Event, plan: Plan) -> Event:
    """Add the model FLOPs utilisation (PaLM, appendix B) to a step event."""
    if event.kind != "step" or plan.flops_per_token is None or not plan.peak_flops:
        return event
    each = event.values["speed"] / plan.ranks
    return event._replace(values={**event.values, "mfu": each * plan.flops_per_token / plan.peak_flops})


def _export(run: Run) -> str | None:
    """Save decoder and tokenizer as one folder; every rank takes part, the first writes."""
    tensors = {name: _whole(tensor) for name, tensor in run.decoder.state_dict().items()}
    if not run.ranks.first:
        return None
    decoder = run.decoder
    if run.ranks.count > 1:
        decoder = Decoder(run.decoder.config)
        decoder.load_state_dict(tensors)
    folder = Path(run.config.out) / MODEL
    with atomic_folder(folder, replace=True) as partial:  # with its tokenizer, or not at all
        try:
            write_decoder(decoder, partial)
            run.corpus.tokenizer.save(partial)
        except BadInput as error:  # name the final folder, not the temporary one
            raise BadInput(str(error).replace(str(partial), str(folder)), code=error.code) from None
    return str(folder)


def _whole(tensor: Tensor) -> Tensor:
    whole: Tensor = tensor.full_tensor().cpu() if hasattr(tensor, "full_tensor") else tensor
    return whole
