"""A callback for Lightning that checks ties: ``callbacks=[KeepTied()]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick.extras import needing
from tallystick.live.callback_base import check_model

if TYPE_CHECKING:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        with needing("tallystick.live.lightning"):
            from pytorch_lightning import Callback


class KeepTied(Callback):  # type: ignore[misc]  # mypy does not follow Lightning
    """A callback that stops a run whose model loses a tie.

    Checks at the start, before each save, and at the end. Needs lightning or pytorch_lightning.
    """

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: D102
        check_model(pl_module, "at the start of the fit")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:  # noqa: D102
        check_model(pl_module, f"at the save at step {trainer.global_step}")

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: D102
        check_model(pl_module, "at the end of the fit")
