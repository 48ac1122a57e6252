"""A callback for `transformers.Trainer` that checks ties: ``callbacks=[KeepTied()]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallystick.extras import needing
from tallystick.live.callback_base import check_folder, check_model

with needing("tallystick.live.trainer"):
    from transformers import TrainerCallback


class KeepTied(TrainerCallback):  # type: ignore[misc]  # mypy does not follow transformers
    """A callback that stops a run whose model loses a tie.

    Checks at the start, after each save (the model and the saved files), and at the end. Needs
    transformers.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: D102
        check_model(kwargs.get("model"), "at the start of training")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: D102
        when = f"after the save at step {state.global_step}"
        check_model(kwargs.get("model"), when)
        check_folder(Path(args.output_dir) / f"checkpoint-{state.global_step}", when)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: D102
        check_model(kwargs.get("model"), "at the end of training")
