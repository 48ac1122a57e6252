"""What the commands have in common: their options, and how they answer."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, shown

SOURCE_HELP = (
    "a preset (tallystick presets), a config.json or a folder with one, a JSON or TOML file of nanoGPT-style or "
    "book-style keys, a .safetensors file, a *.safetensors.index.json, or package.module:factory"
)


def add_command(commands: Any, name: str, summary: str, examples: str | None = None) -> argparse.ArgumentParser:
    """A command with its own help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_source(command: argparse.ArgumentParser, *, without: str = "") -> None:
    """SOURCE, and what to set over it; it may be left out where it is said what is done without."""
    text = f"{SOURCE_HELP}; without it {without}" if without else SOURCE_HELP
    command.add_argument("source", metavar="SOURCE", help=text, nargs="?" if without else None)
    add_settings(
        command,
        "--set",
        "config keys to set over the source's, or arguments of a factory: --set n_layer=24 n_embd=1024",
        to="settings",
    )


def add_settings(command: argparse.ArgumentParser, option: str, what: str, *, to: str) -> None:
    """An option that takes KEY=VALUE once or several times, for `settings_of`."""
    command.add_argument(option, metavar="KEY=VALUE", action="extend", nargs="+", default=[], dest=to, help=what)


def add_format(command: argparse.ArgumentParser, default: str, *others: str) -> None:
    """How the answer is written."""
    command.add_argument("--format", choices=(default, *others), default=default, help=f"default: {default}")


DEVICE_HELP = (
    "h100, a100-80gb, rtx4090 and others; bytes such as 24GB or 24GiB; auto for this machine's; or a JSON or TOML file"
    " of figures: memory, flops, bandwidth, watts"
)


def device_given(word: str | None) -> Any:
    """``--device`` as the answers take it: a file of figures is read."""
    if word is None or not word.endswith((".json", ".toml")):
        return word
    from tallystick.sources.files import read_json, read_toml

    figures = (read_toml if word.endswith(".toml") else read_json)(Path(word))
    if not isinstance(figures, dict):
        raise BadInput(f"{word} holds {shown(figures)}, expected figures of a device: an object with memory")
    return figures


def settings_of(settings: list[str]) -> dict[str, Any]:
    """``--set`` values as JSON where they are JSON (24, false, null), and as words where not."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {setting!r} is not KEY=VALUE (SOURCE goes before --set)")
        try:
            values[key] = json.loads(text)
        except (ValueError, RecursionError):
            values[key] = text
    return values


def print_json(answer: object) -> None:
    """Print an answer's ``to_dict`` as one JSON document."""
    json.dump(answer, sys.stdout, indent=2, ensure_ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))
    sys.stdout.write("\n")
