"""The config of a training run: every key typed, and checked before anything is built."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tallystick.arguments import check_fields
from tallystick.core.config import LARGEST
from tallystick.errors import BadInput, nearest, quoted, shown

MOST_SEEDS = 1 << 32


@dataclass(frozen=True)
class TrainConfig:
    """The keys of a TOML file and of ``--set``, with their defaults.

    Raises:
        BadInput: if a value is out of range.

    >>> config = TrainConfig(source="llama", steps=10, batch=4, accumulate=2)
    >>> config.batch // config.accumulate  # sequences of one forward pass
    2
    """

    # Model: a config's source, overrides of its keys, and whether to load weights.
    source: str = "gpt2"  # a preset's name, a config, or a checkpoint's folder
    model: Mapping[str, Any] = field(default_factory=dict)  # Hugging Face config keys that override the source's
    pretrained: bool = False  # start from the checkpoint's weights

    # Data: text, tokenised once.
    data: str = "stdlib"  # a file or a folder; stdlib: the sources of this Python's library
    tokenizer: str = "bytes"  # or bpe:4096, trained on the data; or a tokenizer.json, or a folder with one
    tokens: str = ""  # folder of the token files, which runs may share; default: in `out`
    validation: float = 0.1  # share of the documents kept for validation
    sequence: int = 256  # tokens per sequence
    batch: int = 8  # sequences per step, over all ranks and all parts of `accumulate`
    accumulate: int = 1  # parts per batch (gradient accumulation)

    # Length and learning rate.
    steps: int = 1000
    learning_rate: float = 6e-4
    schedule: Literal["cosine", "linear", "wsd", "constant"] = "cosine"
    warmup: int = 100  # steps
    decay: float = 0.2  # share of the steps, at the end, in which wsd decays
    final: float = 0.1  # final learning rate, as a share of `learning_rate`

    # Optimizer.
    optimizer: Literal["adamw", "muon"] = "adamw"
    weight_decay: float = 0.1
    decay_embedding: bool = True  # also if the head is tied to it
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0  # maximal norm of the gradients; 0: no clipping
    muon_rate: float = 0.02  # learning rate of the matrices that Muon updates

    # Loss.
    z_loss: float = 0.0
    label_smoothing: float = 0.0

    # Computation.
    device: str = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"  # bfloat16: autocast, weights in float32
    compile: bool = False
    recompute: bool = False  # activation checkpointing of each layer
    sharding: Literal["ddp", "fsdp"] = "ddp"  # with several ranks

    # Output.
    out: str = "run"
    save_every: int = 200
    keep: int = 2  # number of checkpoints to keep
    eval_every: int = 100
    eval_batches: int = 20
    sample_every: int = 0  # steps; 0: no samples
    sample_prompt: str = ""  # prompt; "" is the beginning of a text
    log_every: int = 10
    tensorboard: bool = False
    wandb: str = ""  # project name; "" is off
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("sequence", "batch", "accumulate", "steps", "keep", "log_every", "eval_batches"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}, expected 1 or more", code="bad-value")
        for name in ("warmup", "save_every", "eval_every", "sample_every", "clip", "weight_decay"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} is {getattr(self, name)}, expected 0 or more", code="bad-value")
        for name in ("learning_rate", "muon_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise BadInput(f"{name} is {getattr(self, name)}, expected a number above 0", code="bad-value")
        for name in ("validation", "decay", "final", "label_smoothing", "beta1", "beta2"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(f"{name} is {getattr(self, name)}, expected a share from 0 to 1", code="bad-value")
        if not 0 <= self.seed < MOST_SEEDS:
            raise BadInput(f"seed is {self.seed}, expected 0 to {MOST_SEEDS - 1}", code="bad-value")
        if self.batch % self.accumulate:
            raise BadInput(
                f"batch {self.batch} is not divisible by accumulate {self.accumulate}",
                code="indivisible",
            )


# Presets of whole runs, by name.
PRESETS: dict[str, dict[str, Any]] = {
    "nano": {  # minutes on a laptop's CPU
        "source": "llama",
        "model": {
            "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4,
            "num_key_value_heads": 4, "max_position_embeddings": 256, "tie_word_embeddings": True,
        },
        "sequence": 128, "batch": 16, "steps": 600, "learning_rate": 3e-3, "warmup": 50,
        "eval_every": 100, "save_every": 200,
    },
    "shakespeare-char": {
        "source": "gpt2",
        "model": {
            "n_embd": 384, "n_layer": 6, "n_head": 6, "n_positions": 256,
            "embd_pdrop": 0.2, "attn_pdrop": 0.2, "resid_pdrop": 0.2,
        },
        "sequence": 256, "batch": 64, "steps": 5000, "learning_rate": 1e-3, "beta2": 0.99, "eval_every": 250,
    },
    "gpt2-124m": {
        "source": "gpt2",
        "model": {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0},
        "tokenizer": "bpe:50257",
        "sequence": 1024, "batch": 480, "accumulate": 40, "steps": 600_000, "learning_rate": 6e-4, "warmup": 2000,
        "precision": "bfloat16", "compile": True, "eval_every": 1000, "save_every": 1000,
    },
}  # fmt: skip


def configured(values: Mapping[str, Any], settings: Mapping[str, Any], *, where: str) -> TrainConfig:
    """Return a run's config: a preset, overridden by a file's keys, overridden by settings.

    Args:
        values: keys of a TOML file; ``preset`` names the preset.
        settings: ``key=value`` of the command line; ``model.KEY`` sets a key of the model.
        where: the file, for messages.

    Raises:
        BadInput: if a key is unknown (with the nearest names), or a value has the wrong type.
    """
    given, model = dict(values), dict(_typed("model", values.get("model", {}), Mapping, where))
    for key, value in settings.items():
        if key.startswith("model."):
            model[key.removeprefix("model.")] = value
        else:
            given[key] = value
    preset = given.pop("preset", None)
    if preset is not None and preset not in PRESETS:
        raise BadInput(
            f"{where}: there is no preset {quoted(preset)}{nearest(str(preset), PRESETS)}", code="unknown-name"
        )
    base = dict(PRESETS[preset]) if preset else {}
    if "source" not in given:  # the preset's model keys do not apply to another source
        model = {**base.get("model", {}), **model}
    hints = get_type_hints(TrainConfig)
    for key, value in given.items():
        if key not in hints:
            raise BadInput(f"{where}: unknown key {quoted(key)}{nearest(str(key), hints)}", code="unknown-key")
        given[key] = _typed(key, value, hints[key], where)
    return TrainConfig(**{**base, **given, "model": model})


def _typed(key: str, value: Any, kind: Any, where: str) -> Any:
    """Return a value in the key's type: int becomes float, and a whole float becomes int."""
    if get_origin(kind) is Literal:
        words = get_args(kind)
        if value not in words:
            raise BadInput(f"{where}: {key} is {shown(value)}, expected {', '.join(words)}", code="bad-value")
        return value
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise BadInput(f"{where}: {key} is {shown(value)}, expected a number below 2^63", code="bad-value")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    plain = {int: "an integer", float: "a number", str: "a word", bool: "true or false"}
    if kind in plain and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise BadInput(f"{where}: {key} is {shown(value)}, expected {plain[kind]}", code="bad-value")
    if kind not in plain and not isinstance(value, Mapping):
        raise BadInput(f"{where}: {key} is {shown(value)}, expected a table of the model's keys", code="bad-value")
    return value
