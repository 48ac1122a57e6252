"""Options, output formats and parsing that several commands share."""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path
from typing import Any

from tallystick import count
from tallystick.cli.commands import SUMMARIES
from tallystick.cli.parser import Help, Parser
from tallystick.core.config import LARGEST
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted, shown
from tallystick.extras import needing

SOURCE_HELP = (
    "a preset (tallystick presets), a config.json, a checkpoint file or folder, org/name on the hub, an address "
    "(hf://, https://, s3://, gs://; only file headers are downloaded), or package.module:factory"
)
MOST_LENGTHS = 200  # sequence lengths in one sweep
MOST_DIGITS = 12  # digits of a length
MODES = {"train": "training", "infer": "inference"}


def add_command(commands: Any, name: str, examples: str | None = None) -> Parser:
    """Add a command with its own help to the parser."""
    summary = SUMMARIES[name]
    parser: Parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=Help,
    )
    return parser


def add_source(command: argparse.ArgumentParser, *, without: str = "") -> None:
    """Add SOURCE and --set; `without` says what is used if SOURCE is left out."""
    text = f"{SOURCE_HELP}; default: {without}" if without else SOURCE_HELP
    command.add_argument("source", metavar="SOURCE", help=text, nargs="?" if without else None)
    add_settings(command, "--set", f"override {SET_HELP}", to="settings")
    if not without:
        add_real(command)


SET_HELP = "a config value, or a factory's argument: --set n_layer=24; repeatable"


def add_real(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses where a factory builds its model."""
    command.add_argument(
        "--real",
        action="store_true",
        help="build a factory's model in real memory (default: on the meta device, if the tensors are the same)",
    )


def add_part(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses a part of the source."""
    command.add_argument(
        "--part", choices=("text",), help="text: only the language model of a multimodal model (default: all of it)"
    )


def add_settings(command: argparse.ArgumentParser, option: str, what: str, *, to: str) -> None:
    """Add an option that takes one KEY=VALUE and may be repeated, for `settings_of`."""
    command.add_argument(option, metavar="KEY=VALUE", action="append", type=setting, default=[], dest=to, help=what)


def setting(text: str) -> str:
    """Check that a word is KEY=VALUE (argparse's `type`)."""
    key, equals, _ = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not KEY=VALUE, such as n_layer=24")
    return text


def mode(text: str) -> str:
    """Return the mode that a word means (argparse's `type`): `train` is training."""
    return MODES.get(text, text)


def share(text: str) -> float:
    """Parse a share (argparse's `type`): ``0.4`` or ``40%``."""
    number = text.strip()
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a share: write 0.4 or 40%") from None
    if 1 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is more than the peak: write {text}% or {value / 100:g}")
    return value


DEVICE_HELP = (
    "a name (tallystick devices), such as h100 or 4090; bytes, such as 24GB; auto: this machine's; or a JSON or TOML "
    "file with memory, flops, bandwidth, watts"
)


def device_given(word: str | None) -> Any:
    """Return ``--device`` as an argument for the answers, reading a file of figures."""
    if word is None or not word.endswith((".json", ".toml")):
        return word
    from tallystick.files.texts import read_json, read_toml

    figures = (read_toml if word.endswith(".toml") else read_json)(Path(word))
    if not isinstance(figures, dict):
        raise BadInput(
            f"{word} holds {shown(figures)}, expected figures of a device: an object with memory", code="bad-value"
        )
    return figures


def whole(text: str) -> int:
    """Parse an integer option (argparse's `type`) that is small enough to compute with."""
    try:
        number = int(text)
    except ValueError:  # also raised for an integer of thousands of digits
        raise argparse.ArgumentTypeError(f"invalid int value: {quoted(text)}") from None
    if abs(number) > LARGEST:
        raise argparse.ArgumentTypeError(f"{shown(number)} is not a whole number below 2^63")
    return number


def layers(text: str) -> int | str:
    """Read a number of layers, or auto: as many as fit."""
    return "auto" if text.lower() == "auto" else whole(text)


def length(text: str) -> int:
    """Parse tokens such as ``8192``, or ``8k``, which is 8 × 1,024."""
    number, thousands = text.strip().lower().removesuffix("k"), text.strip().lower().endswith("k")
    if not number.isdecimal() or len(number) > MOST_DIGITS or not int(number):
        raise BadInput(f"{quoted(text)} is not a sequence length: give tokens, such as 8192 or 8k", code="bad-value")
    return int(number) * (1024 if thousands else 1)


def lengths(text: str) -> list[int]:
    """Parse one length, several (``1k,8k``), doublings (``1k:128k``) or steps (``1k:16k:1k``)."""
    if ":" not in text:
        return sorted({length(part) for part in text.split(",")})
    ends = [length(part) for part in text.split(":")]
    if len(ends) > len(("first", "last", "step")) or ends[0] > ends[1]:
        raise BadInput(
            f"{quoted(text)} is not a range of lengths: give FIRST:LAST, or FIRST:LAST:STEP", code="bad-value"
        )
    first, last, *step = ends
    if step:
        found = list(islice(range(first, last + 1, step[0]), MOST_LENGTHS + 1))
    else:
        found = [size for power in range(MOST_LENGTHS) if (size := first << power) <= last]
        found += [last] if found[-1] != last else []
    if len(found) > MOST_LENGTHS:
        raise BadInput(f"{quoted(text)} is more than {MOST_LENGTHS} lengths: take larger steps", code="too-large")
    return found


def add_checkpoint(command: argparse.ArgumentParser) -> None:
    """Add CHECKPOINT and the options for loading it, for `text_model`."""
    command.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="a folder with config.json, weights and tokenizer, org/name on the hub, nanoGPT's ckpt.pt, or llama2.c's .bin",
    )
    command.add_argument(
        "--tokenizer", metavar="PATH", help="tokenizer folder or file, or bytes (default: next to the weights)"
    )
    command.add_argument("--dtype", help="dtype of the model, such as bfloat16 (default: as stored)")
    command.add_argument(
        "--device", metavar="DEVICE", help="PyTorch device, such as cpu or cuda:1 (default: cuda if available)"
    )


def text_model(options: argparse.Namespace) -> Any:
    """Load the checkpoint with its tokenizer, on its device."""
    with needing("running a model", "models"):
        import torch
    from tallystick.models.text_model import TextModel

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return TextModel.load(options.checkpoint, tokenizer=options.tokenizer, dtype=options.dtype, device=device)


def settings_of(settings: list[str]) -> dict[str, Any]:
    """Parse KEY=VALUE words, whose values are JSON (24, false, null) or else words."""
    if not settings:
        return {}
    import json  # a slow import that a plain count does not need

    values: dict[str, Any] = {}
    for word in settings:
        key, _, text = word.partition("=")
        try:
            values[key] = json.loads(text)
        except (ValueError, RecursionError):
            values[key] = text
    return values


def ledger_of(options: argparse.Namespace, source: str | None = None) -> Ledger:
    """Return the ledger of SOURCE, with --part, --real and --set."""
    return count(source or options.source, part=options.part, real=options.real, **settings_of(options.settings))
