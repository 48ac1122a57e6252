"""Options, output formats and parsing that several commands share."""

from __future__ import annotations

import argparse
import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from tallystick.core.config import LARGEST
from tallystick.errors import BadInput, quoted, shown
from tallystick.extras import needing

SOURCE_HELP = (
    "a preset (tallystick presets), a config.json or a folder with one, a JSON or TOML file of nanoGPT-style or "
    "book-style keys, a .safetensors file, a *.safetensors.index.json, any of these as hf://org/name, https://…, s3://… or "
    "gs://…, of which headers alone are fetched, or package.module:factory"
)
_UNSEEN = re.compile(r"[^\x20-\x7e\n]")
MOST_LENGTHS = 200  # sequence lengths in one sweep
MOST_DIGITS = 12  # digits of a length


def add_command(commands: Any, name: str, summary: str, examples: str | None = None) -> argparse.ArgumentParser:
    """Add a command with its own help to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_source(command: argparse.ArgumentParser, *, without: str = "") -> None:
    """Add SOURCE and --set; `without` says what is used if SOURCE is left out."""
    text = f"{SOURCE_HELP}; without it {without}" if without else SOURCE_HELP
    command.add_argument("source", metavar="SOURCE", help=text, nargs="?" if without else None)
    add_settings(
        command,
        "--set",
        "config keys to set over the source's, or arguments of a factory: --set n_layer=24 n_embd=1024",
        to="settings",
    )
    if not without:
        add_real(command)


def add_real(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses where a factory builds its model."""
    command.add_argument(
        "--real",
        action="store_true",
        help="build a factory's model in real memory (default: on the meta device, where that gives the same tensors)",
    )


def add_part(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses a part of the source."""
    command.add_argument(
        "--part",
        choices=("text",),
        help="text: the language model alone of one that also sees or hears (default: the whole)",
    )


def add_settings(command: argparse.ArgumentParser, option: str, what: str, *, to: str) -> None:
    """Add an option that takes KEY=VALUE once or several times, for `settings_of`."""
    command.add_argument(option, metavar="KEY=VALUE", action="extend", nargs="+", default=[], dest=to, help=what)


def add_format(command: argparse.ArgumentParser, default: str, *others: str) -> None:
    """Add the option for the output format."""
    command.add_argument("--format", choices=(default, *others), default=default, help=f"default: {default}")


DEVICE_HELP = (
    "h100, a100-80gb, rtx4090 (or 4090) and others; bytes such as 24GB or 24GiB; auto for this machine's; or a JSON or TOML file"
    " of figures: memory, flops, bandwidth, watts"
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
        raise argparse.ArgumentTypeError(f"{shown(number)} is no whole number below 2^63")
    return number


def length(text: str) -> int:
    """Parse tokens such as ``8192``, or ``8k``, which is 8 × 1,024."""
    number, thousands = text.strip().lower().removesuffix("k"), text.strip().lower().endswith("k")
    if not number.isdecimal() or len(number) > MOST_DIGITS or not int(number):
        raise BadInput(f"{quoted(text)} is no length of a sequence: say tokens, such as 8192 or 8k", code="bad-value")
    return int(number) * (1024 if thousands else 1)


def lengths(text: str) -> list[int]:
    """Parse one length, several (``1k,8k``), doublings (``1k:128k``) or steps (``1k:16k:1k``)."""
    if ":" not in text:
        return sorted({length(part) for part in text.split(",")})
    ends = [length(part) for part in text.split(":")]
    if len(ends) > len(("first", "last", "step")) or ends[0] > ends[1]:
        raise BadInput(f"{quoted(text)} is no range of lengths: say FIRST:LAST, or FIRST:LAST:STEP", code="bad-value")
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
        help="a folder with config.json, weights and a tokenizer, a repository of the hub, nanoGPT's ckpt.pt or llama2.c's .bin",
    )
    command.add_argument("--tokenizer", metavar="PATH", help="bytes, or where one is; default: beside the weights")
    command.add_argument("--dtype", help="of the model, such as bfloat16; default: as stored")
    command.add_argument("--device", metavar="DEVICE", help="such as cpu or cuda:1; default: cuda where there is one")


def text_model(options: argparse.Namespace) -> Any:
    """Load the checkpoint with its tokenizer, on its device."""
    with needing("running a model", "models"):
        import torch
    from tallystick.models.text_model import TextModel

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return TextModel.load(options.checkpoint, tokenizer=options.tokenizer, dtype=options.dtype, device=device)


def settings_of(settings: list[str]) -> dict[str, Any]:
    """Parse ``--set`` values as JSON if they are JSON (24, false, null), otherwise as words."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {quoted(setting)} is not KEY=VALUE (SOURCE goes before --set)", code="bad-value")
        try:
            values[key] = json.loads(text)
        except (ValueError, RecursionError):
            values[key] = text
    return values


def print_json(answer: object) -> None:
    """Print an answer's ``to_dict`` as one JSON document."""
    in_ascii = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    for piece in json.JSONEncoder(indent=2, ensure_ascii=in_ascii).iterencode(answer):
        sys.stdout.write(_UNSEEN.sub(_escaped, piece))
    sys.stdout.write("\n")


def _escaped(found: re.Match[str]) -> str:
    """Return a control character as a JSON escape."""
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"


def print_page(text: str) -> None:
    """Print an HTML page in ASCII with numeric references, valid in any encoding."""
    sys.stdout.write(text.encode("ascii", "xmlcharrefreplace").decode())
