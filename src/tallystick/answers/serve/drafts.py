"""What speculative decoding adds to a device: a draft model, an EAGLE head, or MTP layers.

MTP layers are blocks of the model, each with a projection of two hidden states to one
(`vllm/model_executor/models/deepseek_mtp.py`). An EAGLE head is one block with such a projection
(`llama_eagle.py`); an EAGLE-3 head reads two hidden states in its attention and three before it,
and has a vocabulary of its own (`llama_eagle3.py`). Token embedding and head are the model's.
"""

from __future__ import annotations

from typing import Any

from tallystick.core.anatomy import Attending
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.runtimes.engines import Draft, Rank

DRAFT_VOCABULARY = 32_000  # of the published EAGLE-3 heads
_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")


def draft_of(ledger: Ledger, rank: Rank, method: str, given: Rank | None) -> Draft | None:
    """Return what a method of speculative decoding adds to the last device of a pipeline.

    Args:
        ledger: the model.
        rank: the device's shard of it.
        method: one of `METHODS` in `options`.
        given: the draft model's shard, if the draft is named.

    Raises:
        BadInput: for a draft model without a name, and MTP of a model that has no such layers.
    """
    if method == "ngram":
        return None
    if given is not None:
        return Draft(method, given.weights, given.attending)
    if method == "draft_model":
        raise BadInput("speculative decoding with a draft model: name it with --draft", code="bad-value")
    last = max(rank.attending, key=lambda one: int(one.start) + int(one.layers), default=None)
    if last is None or not rank.layers:
        raise BadInput(f"{method} needs a model with attention layers", code="unsupported")
    if method == "mtp":
        layers = _mtp_layers(ledger)
        each = rank.layers[-1] + 2 * rank.hidden**2 * rank.width
        return Draft(method, layers * each, (_one(last)._replace(layers=layers),))
    return Draft(method, _eagle(rank, last, method), (_one(last),))


def _one(last: Attending) -> Attending:
    """Return one layer like the last, without a window."""
    return last._replace(layers=1, heads=last.heads._replace(windows=((None, 1),)))


def _mtp_layers(ledger: Ledger) -> int:
    values: dict[str, Any] = {} if ledger.model.recipe is None else dict(ledger.model.recipe.values)
    for name, value in values.items():
        if name.rpartition(".")[2] in _LAYERS and isinstance(value, int) and value > 0:
            return int(value)
    return 1


def _eagle(rank: Rank, last: Attending, method: str) -> int:
    """Return the bytes of an EAGLE head: a dense block of the model's sizes, and projections."""
    heads = last.heads
    kept = int(heads.keys) * (int(heads.size) + int(heads.value_size))
    queries = int(heads.queries) * int(heads.size)
    output = int(heads.queries) * int(heads.value_size)
    mlp = (3 if rank.gated else 2) * rank.hidden * rank.inner
    block = rank.hidden * (queries + kept + output) + mlp
    if method == "eagle":
        return (block + 2 * rank.hidden**2) * rank.width
    block += rank.hidden * (queries + kept) + 3 * rank.hidden**2
    return (block + min(DRAFT_VOCABULARY, rank.vocabulary) * rank.hidden) * rank.width
