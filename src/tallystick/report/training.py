"""Print a training run: its plan, a progress bar, and its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from tallystick.report.numbers import in_bytes, in_flops

if TYPE_CHECKING:
    from tallystick.training.plan import Plan
    from tallystick.training.state import Event


def show_plan(plan: Plan, out: Console) -> None:
    """Print the plan of a run before its first step."""
    out.print(f"{plan.parameters:,} parameters", highlight=False)
    for names in plan.ties:
        out.print(f"tied: {' = '.join(names)}", highlight=False)
    for group in plan.groups:
        out.print(f"  {group}", highlight=False)
    out.print(
        f"{plan.train_tokens:,} tokens for training, {plan.validation_tokens:,} for evaluation; vocabulary"
        f" of {plan.vocabulary:,}",
        highlight=False,
    )
    if plan.peak_flops:
        out.print(
            f"100% MFU is {in_flops(plan.peak_flops)} per second here, measured on a large matrix product",
            highlight=False,
        )
    for path in plan.torn:
        out.print(f"{path} is incomplete and was not used", highlight=False, markup=False)
    for note in plan.notes:
        out.print(note, highlight=False, markup=False)
    if plan.step:
        out.print(f"resumes after step {plan.step:,} of {plan.steps:,}", highlight=False)
    if plan.predicted is not None:
        peak, total = plan.predicted.peak, in_bytes(plan.predicted.total_bytes)
        out.print(f"predicted memory per rank: {total}, peak: {peak}", highlight=False)
    else:
        out.print(f"no memory prediction: {plan.why_not}", highlight=False)


ROOMY = 100  # terminal width for the numbers of a step and a bar


class Follower:
    """Display of a run's events: a bar in a terminal, lines elsewhere."""

    def __init__(self, out: Console) -> None:
        text: ProgressColumn = TextColumn("{task.description}", table_column=Column(overflow="fold"))
        drawn = (BarColumn(bar_width=16), TimeRemainingColumn()) if out.width >= ROOMY else ()  # numbers before the bar
        self._bar = Progress(text, *drawn, console=out, disable=not out.is_terminal, transient=True)
        self._out = out
        self.plan: Plan | None = None

    def begin(self, plan: Plan) -> Callable[[Event], None]:
        """Show the bar, and return the function to call with each event."""
        self.plan = plan
        self._bar.start()
        self._task = self._bar.add_task("training", total=plan.steps, completed=plan.step)
        return self._show

    def end(self) -> None:
        """Remove the bar."""
        self._bar.stop()

    def _show(self, event: Event) -> None:
        self._bar.update(self._task, completed=event.step)
        values = event.values
        if event.kind == "step":
            text = f"loss {values['loss']:.4f}, {values['speed']:,.0f} tokens/s"
            text += f", MFU {values['mfu']:.0%}" if "mfu" in values else ""
            steps = "" if self.plan is None else f" of {self.plan.steps:,}"
            self._bar.update(self._task, description=f"step {event.step:,}{steps}: {text}")
            if not self._out.is_terminal:
                self._line(event, text)
        elif event.kind == "evaluated":
            self._line(event, f"validation loss {values['loss']:.4f}, {values['bits_per_byte']:.3f} bits per byte")
        elif event.kind == "sample":
            self._line(event, repr(values["text"]))

    def _line(self, event: Event, text: str) -> None:
        self._out.print(f"step {event.step:,}: {text}", highlight=False, markup=False)
