"""The pages of the commands: a table of all, and each command's options, from their parsers."""

from __future__ import annotations

import argparse
from functools import cache

from tallystick.cli.commands import GROUPS, SUMMARIES
from tallystick.cli.parser import build_parser

TOP = """\
# Commands

What each command answers, and rules that hold for all commands.

- **Exit codes**: 0 done; 1 the answer is no; 2 no answer, with one line that says what is wrong, where, and what to do; 130 interrupted.
- **`--exit-code`** exits with 1 if the answer is no. Commands that ask a yes-or-no question do so by default; `--no-exit-code` turns it off.
- **`--format`** takes `table`, `json`, `csv`, `markdown` or `html` wherever a table is printed. [The JSON](../json.md) is stable.
- **`--set KEY=VALUE`** overrides one config value, or one argument of a factory. It may be repeated, and stand before or after SOURCE.
- **`--part text`** counts only the language model of a multimodal model.
- **SOURCE** is a preset, a file, a folder, `org/name` on the hub, an address, or `package.module:factory`: [Sources](../sources.md). A name that is
  nothing on this machine is looked up on the hub, and the answer then names `hf://org/name`.
"""
HEAD = """
## {group}

| command | answers | `--format` | `--part` | `--set` | exit code 1 |
| --- | --- | --- | --- | --- | --- |
"""
USUAL = ("table", "json", "csv", "markdown", "html")


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    actions = build_parser()._actions
    (found,) = (action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    return dict(found)


def index_page() -> str:
    """The tables of the commands, in Markdown."""
    tables = [
        HEAD.format(group=group) + "".join(_rules(name, commands()[name]) for name in names)
        for group, names in GROUPS.items()
    ]
    return "".join([TOP, *tables])


def options_of(command: argparse.ArgumentParser) -> str:
    """A command's usage, options and examples, as sections of its page."""
    command.color = False  # which Python 3.14 has in a terminal
    usage = "\n".join(line[len("usage: ") :] for line in command.format_usage().splitlines())
    rows = [_row(action) for action in command._actions if action.dest != "help"]
    lines = ["", "## Options", "", *_block(usage)]
    if rows:
        lines += ["| option | meaning |", "| --- | --- |", *rows, ""]
    words, _, examples = (command.epilog or "").rpartition("examples:\n")
    lines += [words] if words else []
    if examples:
        lines += ["## More examples", "", *_block("\n".join(line.strip() for line in examples.splitlines()))]
    return "\n".join(lines)


def _rules(name: str, command: argparse.ArgumentParser) -> str:
    """A row of the table of rules."""
    options = {action.dest: action for action in command._actions}
    formats = options["format"].choices if "format" in options else ()
    known = "all" if set(USUAL) <= set(formats) else ", ".join(formats) or "–"
    part = "yes" if "part" in options else "–"
    settings = "yes" if any("--set" in action.option_strings for action in options.values()) else "–"
    no = "–"
    if fails := options.get("exit_code"):
        no = fails.help.removeprefix("exit code 1 ").partition(" (")[0]
        no += "" if fails.default else ", with `--exit-code`"
    return f"| [`{name}`]({name}.md) | {SUMMARIES[name]} | {known} | {part} | {settings} | {no} |\n"


def _block(text: str) -> list[str]:
    return ["```text", text, "```", ""]


def _row(action: argparse.Action) -> str:
    """An argument: how it is written, and what it does."""
    formatter = argparse.HelpFormatter("")
    if action.option_strings:
        values = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
        name = "`, `".join(f"{option} {values}".strip() for option in action.option_strings)
    else:
        name = str(action.metavar or action.dest)
    cells = (f"`{name}`", formatter._expand_help(action) if action.help else "")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
