"""``tallystick quiz``: ask for a model's number of parameters, and judge the answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tallystick.cli.options import SET_HELP, add_command, add_settings, settings_of
from tallystick.cli.output import add_exit_code, add_format, print_json

if TYPE_CHECKING:
    from tallystick.course.judgement import Judgement

EXAMPLES = """\
examples:
  tallystick quiz                                   list the models
  tallystick quiz bare-bones-lm                     ask
  tallystick quiz bare-bones-lm 129000              at the question's sizes
  tallystick quiz bare-bones-lm "2*vocab_size*d_model" --hints 3
  tallystick quiz transformer-lm -                  answers from stdin
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "quiz", EXAMPLES)
    command.add_argument("model", metavar="MODEL", nargs="?", help="a teaching model; default: list them")
    command.add_argument(
        "answer", metavar="ANSWER", nargs="?", help="a number, or an expression in the sizes; - reads lines from stdin"
    )
    add_settings(command, "--set", f"override {SET_HELP}", to="settings")
    command.add_argument("--hints", type=int, choices=(0, 1, 2, 3), default=1, help="hints to show (default: 1)")
    add_exit_code(command, "the answer is wrong", default=True)
    add_format(command, "text", "json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.course.quiz import MODELS, quiz
    from tallystick.course.words import SUMMARIES

    if options.model is None:
        if options.format == "json":
            print_json({"models": {name: quiz(name).words for name in MODELS}})
        else:
            sys.stdout.write("".join(f"{name:<23}{SUMMARIES[name.replace('-', '_')]}\n" for name in MODELS))
        return 0
    question = quiz(options.model, **settings_of(options.settings))
    in_text = options.format != "json"
    if in_text and options.answer is None:
        sys.stdout.write(f"{question.text}\n")
    judged = []
    for text in _answers(options.answer):
        judged.append((text, question.judge(text)))
        if in_text:
            _show(judged[-1][1], options.hints)
        if judged[-1][1].right:
            break
    if not in_text:
        answers = [_row(text, judgement, options.hints) for text, judgement in judged]
        print_json({"model": question.model, "question": question.text, "sizes": question.sizes, "answers": answers})
    return int(options.exit_code and bool(judged) and not judged[-1][1].right)


def _show(judgement: Judgement, hints: int) -> None:
    lines = [f"hint {number} of {len(judgement.hints)}: {hint}" for number, hint in enumerate(judgement.hints, 1)]
    sys.stdout.write("\n".join([judgement.sentence, *lines[:hints], ""]))


def _row(text: str, judgement: Judgement, hints: int) -> dict[str, Any]:
    return {
        "answer": text,
        "right": judgement.right,
        "sentence": judgement.sentence,
        "hints": list(judgement.hints[:hints]),
    }


def _answers(given: str | None) -> Iterator[str]:
    """Yield the answers: the one given, the lines of stdin, or what a person types."""
    if given == "-":
        yield from (line.strip() for line in sys.stdin if line.strip())
    elif given is not None:
        yield given
    elif sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        while True:
            sys.stdout.write("> ")
            sys.stdout.flush()
            if not (line := sys.stdin.readline().strip()):
                return
            yield line
