"""``tallystick``: the commands, their options, and what each prints.

Exit codes: 0 done, 1 a check that was asked for failed, 2 bad input (one line on stderr says which).
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from tallystick import __version__, count, formula, ties
from tallystick.errors import BadInput

SOURCE_HELP = (
    "a preset (tallystick presets), a config.json or a folder with one, a JSON or TOML file of nanoGPT-style or "
    "book-style keys, a .safetensors file, a *.safetensors.index.json, or package.module:factory"
)
EXAMPLES = """\
examples:
  tallystick count gpt2                             how many parameters, and where
  tallystick count ./checkpoint --by layer          a folder with config.json and safetensors
  tallystick formula gpt2 --steps                   each product with its numbers
  tallystick ties ./checkpoint                      what is shared, and what was lost
  tallystick survive                                which operations keep a tie
  tallystick presets                                the names that it knows

shell completion:
  tallystick --print-completion bash > ~/.local/share/bash-completion/completions/tallystick
"""
COUNT_EXAMPLES = """\
examples:
  tallystick count llama-3-8b
  tallystick count gpt2 --set tie_word_embeddings=false n_layer=24
  tallystick count config.json --by layer
  tallystick count ./checkpoint --by tensor --format csv
  tallystick count model.safetensors --format json
  tallystick count my_model:build                   an nn.Module that your own code builds
"""
FORMULA_EXAMPLES = """\
examples:
  tallystick formula gpt2
  tallystick formula config.json --steps            each product with its numbers
  tallystick formula deepseek-v3 --latex
"""


TIES_EXAMPLES = """\
examples:
  tallystick ties ./checkpoint                      exit code 1 when config and weights contradict each other
  tallystick ties my_model:build --format json
  tallystick ties ./checkpoint --fix ./mended       a copy with the tie stored once, or the config set right
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see {self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """All commands and options."""
    parser = _Parser(
        prog="tallystick",
        description="Tells exactly where every parameter of a language model goes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tallystick {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    command = _add_command(commands, "count", "how many parameters, and where", COUNT_EXAMPLES)
    _add_source(command)
    command.add_argument("--by", choices=("role", "layer", "tensor", "dtype"), help="what to break the count down by")
    _add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_count)

    command = _add_command(commands, "formula", "the closed form of the count, in the config's keys", FORMULA_EXAMPLES)
    _add_source(command)
    command.add_argument("--steps", action="store_true", help="show each product with its numbers")
    command.add_argument("--latex", action="store_true", help="print LaTeX alone")
    _add_format(command, "text", "json")
    command.set_defaults(run=_formula)

    command = _add_command(commands, "ties", "what is shared, what should be, and what was lost", TIES_EXAMPLES)
    _add_source(command)
    command.add_argument("--fix", metavar="OUT", help="write a mended copy of a checkpoint's folder there")
    command.add_argument(
        "--as", choices=("tied", "untied"), dest="as_", help="what a mended copy is to be where the values differ"
    )
    _add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_ties)

    command = _add_command(commands, "survive", "which operations keep a tie: each is run on a small model")
    _add_format(command, "table", "json", "markdown")
    command.set_defaults(run=_survive)

    command = _add_command(commands, "presets", "the names that it knows, with their counts")
    _add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_presets)
    return parser


def _add_command(commands: Any, name: str, summary: str, examples: str | None = None) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _add_source(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        dest="settings",
        help="config keys to set over the source's, or arguments of a factory: --set n_layer=24 n_embd=1024",
    )


def _add_format(command: argparse.ArgumentParser, default: str, *others: str) -> None:
    command.add_argument("--format", choices=(default, *others), default=default, help=f"default: {default}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    # A short run makes many small objects and keeps most: looking for cycles among them so often is wasted.
    gc.set_threshold(200_000)
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path or a tensor's name may hold what the terminal's encoding lacks: escaped, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        parser = build_parser()
        if "--print-completion" in arguments:
            import shtab

            shtab.add_argument_to(parser)
        options = parser.parse_args(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
    except BadInput as error:
        print("tallystick:", error, file=sys.stderr)  # noqa: T201
        return 2
    except BrokenPipeError:  # the reader, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


# -- the commands ---------------------------------------------------------------------------------


def _count(options: argparse.Namespace) -> int:
    ledger = count(options.source, **_settings(options))
    if options.format == "json":
        _print_json(ledger.to_dict(by=options.by))
        return 0
    from tallystick.report.table import console
    from tallystick.report.terminal import show_count

    show_count(ledger, console(), by=options.by or "role", style=options.format)
    return 0


def _formula(options: argparse.Namespace) -> int:
    answer = formula(options.source, **_settings(options))
    if options.format == "json":
        _print_json(answer.to_dict())
        return 0
    from tallystick.report.table import console
    from tallystick.report.terminal import show_formula

    show_formula(answer, console(), steps=options.steps, latex=options.latex)
    return 0


def _ties(options: argparse.Namespace) -> int:
    if options.as_ and not options.fix:
        raise BadInput("--as says what --fix is to write: name a folder with --fix")
    answer = ties(options.source, **_settings(options))
    if options.fix:
        from tallystick.sources.repair import repair

        for line in repair(Path(options.source), Path(options.fix), answer, as_=options.as_):
            print(line)  # noqa: T201
        return 0
    if options.format == "json":
        _print_json(answer.to_dict())
    else:
        from tallystick.report.table import console
        from tallystick.report.terminal import show_ties

        show_ties(answer, console(), style=options.format)
    return 1 if answer.verdict == "contradiction" else 0


def _survive(options: argparse.Namespace) -> int:
    from tallystick.live.survive import survive

    answer = survive()
    if options.format == "json":
        _print_json(answer.to_dict())
        return 0
    from tallystick.report.table import console
    from tallystick.report.terminal import show_survival

    show_survival(answer, console(), style=options.format)
    return 0


def _presets(options: argparse.Namespace) -> int:
    from tallystick.presets import PRESETS

    rows = []
    for name in PRESETS:
        ledger = count(name)
        rows.append(
            {
                "name": name,
                "architecture": ledger.architecture,
                "parameters": ledger.total,
                "active": ledger.totals["active"],
            }
        )
    if options.format == "json":
        _print_json(rows)
        return 0
    from tallystick.report.table import console
    from tallystick.report.terminal import show_presets

    show_presets(rows, console(), style=options.format)
    return 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """``--set`` values as JSON where they are JSON (24, false, null), and as words where not."""
    settings: dict[str, Any] = {}
    for setting in options.settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {setting!r} is not KEY=VALUE (SOURCE goes before --set)")
        try:
            settings[key] = json.loads(text)
        except (ValueError, RecursionError):
            settings[key] = text
    return settings


def _print_json(answer: object) -> None:
    json.dump(answer, sys.stdout, indent=2, ensure_ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))
    sys.stdout.write("\n")
