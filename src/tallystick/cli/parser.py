"""Parse the command line: grouped help, nearest words for typos, several values after ``--set``.

>>> separated(["--set", "n_layer=24", "n_embd=1024", "gpt2"])
['--set', 'n_layer=24', '--set', 'n_embd=1024', 'gpt2']
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from tallystick import __version__
from tallystick.cli.commands import COMMANDS, GROUPS, SYNONYMS
from tallystick.errors import BadInput, nearest, quoted
from tallystick.sources.locate import FACTORY

LONGEST = 500  # characters of an argparse message

SETTINGS = ("--set", "--set-a", "--set-b", "--vary")  # options that take KEY=VALUE
_SETTING = re.compile(r"[A-Za-z_][\w.]*=.*", re.DOTALL)
_OWN = ("-h", "--help", "--version", "--print-completion")  # options that need no command

TOP = """\
usage: tallystick COMMAND [options]

Count and explain every parameter of a language model, exactly.
"""
EXAMPLES = """\
examples:
  tallystick count gpt2
  tallystick count org/name                         headers from the hub
  tallystick reconcile gpt2 163M
  tallystick compare gpt2 my_model:build            your own nn.Module
  tallystick fit llama-3-8b --device rtx4090
  tallystick memory llama-3-8b --dtype bf16,int8,int4

options of each command: tallystick COMMAND --help
shell completion: tallystick --print-completion bash (or zsh, tcsh)
version: tallystick --version
"""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal.

    argparse makes a formatter for each option that it adds, and would import `shutil` for it.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the width of the terminal, or 80, as `shutil.get_terminal_size` does."""
    try:
        if (stated := int(os.environ.get("COLUMNS", "0"))) > 0:
            return stated
    except ValueError:
        pass
    try:
        return os.get_terminal_size(1).columns or 80
    except (AttributeError, OSError):  # no terminal, or a system without them
        return 80


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `BadInput`, with the help that belongs to them."""

    take_words: Callable[[argparse.Namespace, list[str]], list[str]] | None = None  # takes words that are left over

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; refuse what is left over here, where the command's own options are known."""
        found, extras = super().parse_known_args(args, namespace)
        if extras and self.take_words is not None:
            extras = self.take_words(found, extras)
        if extras:
            self.error(self._unexpected(extras[0]))
        return found, []

    def _unexpected(self, word: str) -> str:
        if not word.startswith("-"):
            also = f"; say --set {word}" if _SETTING.fullmatch(word) and "--set" in self._option_string_actions else ""
            return f"unexpected argument {quoted(word)}{also}"
        option = word.partition("=")[0]
        return f"there is no option {quoted(option)}{nearest(option, self._option_string_actions)}"

    def format_usage(self) -> str:
        """Return one line: the options follow in the help."""
        forms = {"?": "[{}]", "*": "[{} ...]"}
        names = [
            forms.get(str(one.nargs), "{}").format(one.metavar or "|".join(one.choices or [one.dest]))
            for one in self._get_positional_actions()
        ]
        return f"usage: {' '.join([self.prog, *names])} [options]\n"

    def format_help(self) -> str:
        """Return the help with the short usage."""
        self.usage = self.format_usage().removeprefix("usage: ").rstrip()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise `BadInput`, naming the command's help."""
        cut = message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…"  # it repeats the user's words
        raise BadInput(f"{cut} (see {self.prog} --help)", code="bad-value")


class _Top(Parser):
    def format_help(self) -> str:
        return top_help()


def top_help() -> str:
    """Return the help of ``tallystick``: its commands by group."""
    lines = [TOP]
    for group, commands in GROUPS.items():
        lines += [group, *(f"  {name:<12}{summary}" for name, summary in commands.items()), ""]
    return "\n".join([*lines, EXAMPLES])


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Build the parser with all commands, or import and add only one command."""
    parser = _Top(prog="tallystick", formatter_class=Help)
    parser.add_argument("--version", action="version", version=f"tallystick {__version__}")
    # Given `prog`, argparse does not format a usage line to find it, which saves imports.
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog=parser.prog, parser_class=Parser
    )
    for name in (command,) if command else COMMANDS:
        import_module(f"tallystick.cli.commands.{name}").add(commands)
    return parser


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the words of a command line.

    Raises:
        BadInput: if they make no sense. The message names what is nearest.
        SystemExit: after ``--help`` or ``--version``, which print.
    """
    if not arguments:
        arguments = ["--help"]
    first = arguments[0]
    if "--print-completion" in arguments:
        from tallystick.cli.completion import add_completion

        return add_completion(build_parser()).parse_args(arguments)
    if first in COMMANDS:
        return build_parser(first).parse_args(separated(arguments))
    if first not in _OWN:
        raise unknown_command(first, arguments[1:])
    return build_parser(COMMANDS[0]).parse_args(arguments)  # prints


def separated(arguments: Sequence[str]) -> list[str]:
    """Repeat an option of KEY=VALUE before each further such word: SOURCE may come after it."""
    option, words, found = "", 0, []
    for word in arguments:
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            option, words = (name if name in SETTINGS else ""), len(equals)
        elif option and words and _SETTING.fullmatch(word):
            found.append(option)
        elif words:
            option = ""
        else:
            words = 1
        found.append(word)
    return found


def unknown_command(word: str, rest: Sequence[str] = ()) -> BadInput:
    """Return the error for an unknown command: the first word is an option, a model, or a typo."""
    return BadInput(_no_command(word, rest), code="bad-value")


def _no_command(word: str, rest: Sequence[str]) -> str:
    where = "see tallystick --help"
    if word.startswith("-"):
        near = nearest(word, [option for option in _OWN if option.startswith("--")])
        return f"{quoted(word)} comes before a command{near}; options follow it, as in tallystick count gpt2 --by layer"
    if _is_source(word):
        return f"{quoted(word)} is not a command: did you mean tallystick {' '.join(['count', word, *rest])}"
    if known := SYNONYMS.get(word.lower()):
        return f"there is no command {quoted(word)}: did you mean tallystick {known} ({where})"
    if near := nearest(word, COMMANDS):
        return f"there is no command {quoted(word)}{near} ({where})"
    from tallystick.presets import PRESETS

    model = nearest(word, PRESETS, most=1).partition(": ")[2]
    also = f"; for the model: tallystick count {model}" if model else ""
    return f"there is no command {quoted(word)}{also} ({where})"


def _is_source(word: str) -> bool:
    """Return whether a word names a model rather than a command."""
    from tallystick.presets import PRESETS

    return (
        word.lower() in PRESETS
        or "://" in word
        or "/" in word
        or bool(FACTORY.fullmatch(word))
        or ("\0" not in word and os.path.exists(word))
    )
