"""Build or load the decoder that a run trains."""

from __future__ import annotations

from typing import Any

import torch

from tallystick.errors import BadInput
from tallystick.models import families
from tallystick.models.config import DecoderConfig
from tallystick.models.decoder import Decoder
from tallystick.training.config import TrainConfig

SOME = 257  # vocabulary size while the tokenizer's is unknown


def decoder_of(config: TrainConfig, vocabulary: int) -> Decoder:
    """Return the decoder with pretrained weights, or with new ones from the config's seed.

    Args:
        config: config of the run.
        vocabulary: size of the tokenizer's vocabulary; the default number of embedding rows.

    Raises:
        BadInput: if the embedding has fewer rows than the vocabulary, or the model fewer
            positions than a sequence.
    """
    if config.pretrained:
        from tallystick.models.checkpoints.loading import load_pretrained

        if config.model:
            raise BadInput(
                f"pretrained weights have fixed sizes: {', '.join(config.model)} cannot be changed",
                code="conflicting-options",
            )
        decoder = load_pretrained(config.source)
    else:
        torch.manual_seed(config.seed)
        decoder = Decoder(config_of_model(config, vocabulary))
    rows = decoder.config.vocab_size
    if rows < vocabulary:
        raise BadInput(
            f"the embedding has {rows:,} rows, but the tokenizer has {vocabulary:,} entries",
            code="mismatch",
        )
    _refuse_long(config, decoder.config)
    return decoder


def config_of_model(config: TrainConfig, vocabulary: int = SOME) -> DecoderConfig:
    """Return the config of a new decoder.

    Args:
        config: config of the run.
        vocabulary: size of the tokenizer's vocabulary, if known.

    Raises:
        BadInput: if the model's config is invalid, or has fewer positions than a sequence.
    """
    source: Any = config.source
    if source in families.known() and source != "gpt2":  # a model type without config; gpt2 is a preset too
        source = {"model_type": source}
    try:
        found = families.config_of(source, **{"vocab_size": vocabulary, **config.model})
    except BadInput as error:  # the user wrote a TOML table, not a dictionary
        raise BadInput(str(error).replace("the dictionary: ", "model."), code=error.code) from None
    _refuse_long(config, found)
    return found


def _refuse_long(config: TrainConfig, model: DecoderConfig) -> None:
    if model.context < config.sequence:
        raise BadInput(
            f"sequence {config.sequence} is longer than the {model.context} positions of the model", code="bad-value"
        )
