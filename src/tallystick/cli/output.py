"""Print an answer in the format that --format names, and its exit code."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any

TABLES = ("table", "json", "csv", "markdown", "html")
_UNSEEN = re.compile(r"[^\x20-\x7e\n]")


def add_format(command: argparse.ArgumentParser, *formats: str) -> None:
    """Add the option for the output format; by default all formats of a table."""
    formats = formats or TABLES
    command.add_argument("--format", choices=formats, default=formats[0], help=f"output format (default: {formats[0]})")


def add_exit_code(command: argparse.ArgumentParser, no: str, *, default: bool = False) -> None:
    """Add the option to exit with 1 if the answer is no.

    Commands whose question is yes or no do so by default.

    Args:
        command: the command's parser.
        no: when the answer is no, in words.
        default: whether the command does so by default.
    """
    usual = "default" if default else "default: exit code 0"
    command.add_argument(
        "--exit-code",
        action=argparse.BooleanOptionalAction,
        default=default,
        help=f"exit code 1 if {no} ({usual})",
    )


def print_answer(
    style: str, show: Callable[..., None], *answer: Any, title: str = "", picture: str = "", **options: Any
) -> None:
    """Print an answer as a table, or as a page with the same table.

    Args:
        style: one of `TABLES`, except JSON.
        show: one of the `show_` functions of `tallystick.report`.
        answer: its arguments before the console.
        title: of the page; by default the answer's source.
        picture: markup that a page has above its first table.
        options: its keyword arguments.
    """
    if style == "html":
        from tallystick.report.html.page import page
        from tallystick.report.html.sheet import section

        heading = title or str(getattr(answer[0], "source", ""))
        print_page(page(heading, {"": section(show, *answer, picture=picture, **options)}))
    else:
        from tallystick.report.tables.table import console

        show(*answer, console(), style=style, **options)


def print_json(answer: object) -> None:
    """Print an answer's ``to_dict`` as one JSON document."""
    import json

    in_ascii = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    for piece in json.JSONEncoder(indent=2, ensure_ascii=in_ascii).iterencode(answer):
        sys.stdout.write(_UNSEEN.sub(_escaped, piece))
    sys.stdout.write("\n")


def _escaped(found: re.Match[str]) -> str:
    """Return a control character as a JSON escape."""
    import json

    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"


def print_page(text: str) -> None:
    """Print an HTML page in ASCII with numeric references, valid in any encoding."""
    sys.stdout.write(text.encode("ascii", "xmlcharrefreplace").decode())
