"""The decoder that a run trains."""

from __future__ import annotations

from typing import Any

import torch

from tallystick.errors import BadInput
from tallystick.models import families
from tallystick.models.decoder import Decoder
from tallystick.training.config import TrainConfig


def decoder_of(config: TrainConfig, vocabulary: int) -> Decoder:
    """With the weights of a checkpoint, or with new ones, drawn from the config's seed.

    Args:
        config: of the run.
        vocabulary: entries of the tokenizer; the embedding gets as many rows where the config does not say more.

    Raises:
        BadInput: where the embedding has fewer rows than the tokenizer has entries, or fewer positions than a sequence.
    """
    if config.pretrained:
        from tallystick.models.checkpoint import load_pretrained

        if config.model:
            raise BadInput(
                f"pretrained weights have their own sizes: {', '.join(config.model)} cannot be set over them"
            )
        decoder = load_pretrained(config.source)
    else:
        settings: dict[str, Any] = {"vocab_size": vocabulary, **config.model}
        source: Any = config.source
        if source in families.known() and source != "gpt2":  # a model type alone; gpt2 is a preset, too
            source = {"model_type": source}
        torch.manual_seed(config.seed)
        decoder = Decoder.of(source, **settings)
    rows, context = decoder.config.vocab_size, decoder.config.context
    if rows < vocabulary:
        raise BadInput(
            f"the embedding has {rows:,} rows and the tokenizer {vocabulary:,} entries: ids would have no row"
        )
    if context < config.sequence:
        raise BadInput(f"sequence {config.sequence} is longer than the {context} positions of the model")
    return decoder
