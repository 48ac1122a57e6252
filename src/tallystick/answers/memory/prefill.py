"""Peak activations of prefill in inference, without weights and KV cache."""

from __future__ import annotations

from tallystick.answers.memory.activations import head_of, running_of
from tallystick.answers.memory.lines import Line
from tallystick.core.dtypes import BITS
from tallystick.core.ledger import Ledger
from tallystick.runtimes import Load, Running


def prefill(
    ledger: Ledger, batch: int, sequence: int, *, dtype: str, attention: str = "flash", running: Running | None = None
) -> list[Line]:
    """Return the largest set of activations alive at the same time in one layer.

    This counts what transformers holds in inference: the residual stream between layers, plus the
    largest of three sets: the MLP's, the experts' or the attention's tensors. The KV cache is not
    included.

    Args:
        ledger: a model whose source describes how it runs; otherwise there are no lines.
        batch: prompts per pass.
        sequence: tokens per prompt.
        dtype: of the matrix products.
        attention: ``"flash"`` or ``"eager"``, as for `saved`.
        running: as for `saved`.
    """
    parts = ledger.model.parts
    if not parts:
        return []
    load = Load(batch, sequence, BITS[dtype] // 8, attention=attention)
    size, name = (running or running_of(ledger)).alive(parts, load)
    return [Line("activations", f"peak activations ({name}, one layer)", size, f"{size:,} B")]


def last_logits(ledger: Ledger, batch: int, *, dtype: str) -> list[Line]:
    """Return the logits (last token).

    Args:
        ledger: a model whose source describes how it runs; otherwise there are no lines.
        batch: prompts per pass.
        dtype: of the matrix products.
    """
    head = head_of(ledger)
    if head is None or not ledger.model.parts:
        return []
    vocabulary, width = int(head.shape[0]), BITS[dtype] // 8
    formula = f"{batch:,} × {vocabulary:,} × {width} B"
    return [Line("logits", "logits (last token)", batch * vocabulary * width, formula)]
