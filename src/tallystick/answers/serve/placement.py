"""Place a model on an engine's devices: its shards, and what drafts and adapters add to them."""

from __future__ import annotations

import re
from dataclasses import replace

from tallystick.answers.serve.drafts import draft_of
from tallystick.answers.serve.of_llama_cpp import gguf_tensors
from tallystick.answers.serve.options import Options
from tallystick.answers.serve.ranks import ranks_of
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.runtimes.engines import Engine, Rank

LLAMA_CPP = "llama.cpp"
_SENSES = re.compile(r"(?:model\.)?(?:vis|audio|image|multi_modal)\w*\.")
RANK = 16  # default of --max-lora-rank, the rank of LoRA adapters


def placed(
    ledger: Ledger,
    engine: Engine,
    asked: Options,
    form: str | None,
    computed: str,
    *,
    draft: Ledger | None,
    learned: bool,
) -> list[Rank]:
    """Return the first device of each pipeline stage.

    Args:
        ledger: the model.
        engine: the engine; its `loaded` adds tensors that it computes while loading.
        asked: the options.
        form: number format of the weights; None: as stored.
        computed: dtype of activations.
        draft: the draft model of speculative decoding, if one is named.
        learned: the model has learned positions.
    """
    padded = engine.padded_vocabulary
    if asked.language_model_only:
        ledger = _without_towers(ledger)
    stages = 1 if engine.name == LLAMA_CPP else asked.pp  # llama.cpp divides the layers itself
    ranks = ranks_of(ledger, form, computed, asked.tp, stages, padded=padded)
    if asked.override_tensor:
        ranks[0] = ranks[0]._replace(tensors=gguf_tensors(ledger, form))
    if asked.dp > 1:
        ranks = _data_parallel(ledger, engine, asked, form, computed, ranks)
    ranks = [engine.loaded(rank, asked.engine_version, learned=learned) for rank in ranks]
    if asked.max_loras:
        low = (asked.max_lora_rank or RANK) * asked.max_loras
        ranks = [rank._replace(adapters=low * rank.low_rank) for rank in ranks]
    if asked.speculative:
        given = None if draft is None else ranks_of(draft, None, computed, asked.tp, 1, padded=padded)[0]
        ranks[-1] = ranks[-1]._replace(draft=draft_of(ledger, ranks[-1], asked.speculative, given))
    return ranks


def with_language(ledger: Ledger) -> Ledger:
    """Return a model described by its language model, if only that is known."""
    model, language = ledger.model, ledger.model.language
    if language is None or model.attending or model.recurring:
        return ledger
    described = replace(
        model,
        positions=language.positions or model.positions,
        stretch=language.stretch,
        recipe=language.recipe,
        attending=language.attending,
        recurring=language.recurring,
        parts=language.parts,
        towers=_towers(ledger),
    )
    return replace(ledger, model=described)


def _towers(ledger: Ledger) -> tuple[str, ...]:
    """Return the name prefixes of what sees and hears, as far as the names say so."""
    found = {match[0]: None for entry in ledger.rolled if (match := _SENSES.match(entry.name))}
    return tuple(found)


def _without_towers(ledger: Ledger) -> Ledger:
    """Return the language model alone."""
    towers = ledger.model.towers
    kept = tuple(entry for entry in ledger.rolled if not (towers and entry.name.startswith(towers)))
    return replace(ledger, rolled=kept)


def _data_parallel(
    ledger: Ledger, engine: Engine, asked: Options, form: str | None, computed: str, ranks: list[Rank]
) -> list[Rank]:
    """Return the ranks of a data-parallel engine.

    vLLM's replicas divide the experts between all their ranks, and hold the rest each
    (`FusedMoEParallelConfig` in `vllm/model_executor/layers/fused_moe/config.py`). SGLang's divide
    the tensor-parallel ranks: only the attention is data-parallel (``--enable-dp-attention``).
    """
    if engine.name == "vllm":
        return [_fewer(rank, rank.routed - rank.routed // asked.dp) for rank in ranks]
    if engine.name == LLAMA_CPP or asked.tp % asked.dp:
        raise BadInput(f"dp is {asked.dp}, expected a divisor of tp, {asked.tp}", code="bad-value")
    attention = ranks_of(ledger, form, computed, asked.tp // asked.dp, asked.pp, padded=engine.padded_vocabulary)
    return [
        rank._replace(
            weights=rank.weights - rank.attention + own.attention,
            reserved=rank.reserved - rank.attention + own.attention,
            attention=own.attention,
            attending=own.attending,
        )
        for rank, own in zip(ranks, attention, strict=True)
    ]


def _fewer(rank: Rank, routed: int) -> Rank:
    """Return a rank with that many fewer bytes of routed experts."""
    return rank._replace(weights=rank.weights - routed, reserved=rank.reserved - routed, routed=rank.routed - routed)
