"""What reading a prompt takes at once, without the weights and the cache."""

from __future__ import annotations

from tallystick.answers.memory.activations import head_of, running_of
from tallystick.answers.memory.lines import Line
from tallystick.core.dtypes import BITS
from tallystick.core.ledger import Ledger
from tallystick.runtimes import Load, Running


def prefill(
    ledger: Ledger, batch: int, sequence: int, *, dtype: str, attention: str = "flash", running: Running | None = None
) -> list[Line]:
    """The largest set of tensors alive at once in one layer.

    Counted is what transformers holds in inference: the tensors that go from layer to layer, and those of the MLP at
    its product, of the experts at theirs, or of the attention, whichever is most. The cache is not.

    Args:
        ledger: one that tells how its model runs; of any other nothing is known, and there is no line.
        batch: prompts at once.
        sequence: tokens of each.
        dtype: of the matrix products.
        attention: ``"flash"`` or ``"eager"``, as for `saved`.
        running: as for `saved`.
    """
    parts = ledger.model.parts
    if not parts:
        return []
    load = Load(batch, sequence, BITS[dtype] // 8, attention=attention)
    size, name = (running or running_of(ledger)).alive(parts, load)
    return [Line("activations", f"the tensors of {name} at once", size, f"{size:,} B")]


def last_logits(ledger: Ledger, batch: int, *, dtype: str) -> list[Line]:
    """The logits of the last position.

    Args:
        ledger: one that tells how its model runs; of any other there is no line.
        batch: prompts at once.
        dtype: of the matrix products.
    """
    head = head_of(ledger)
    if head is None or not ledger.model.parts:
        return []
    vocabulary, width = int(head.shape[0]), BITS[dtype] // 8
    formula = f"{batch:,} × {vocabulary:,} × {width} B"
    return [Line("logits", "logits of the last position", batch * vocabulary * width, formula)]
