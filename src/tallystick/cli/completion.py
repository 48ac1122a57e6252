"""``--print-completion``: shell completion of commands, options, presets, devices and dtypes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

_BASH = """\
_tallystick_sources() {{
  compgen -W "{presets}" -- $1
  compgen -f -- $1
}}
"""
_ZSH = """\
_tallystick_sources() {{
  compadd -- {presets}
  _files
}}
"""
_SOURCES = ("source", "a", "b", "against")  # where a model is named


def add_completion(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add ``--print-completion SHELL``, with the known words of each option."""
    import shtab

    presets = " ".join(_presets())
    for command, action in _actions(parser):
        if action.dest in _SOURCES:
            action.complete = {  # type: ignore[attr-defined]
                "bash": "_tallystick_sources",
                "zsh": "_tallystick_sources",
                "tcsh": f"`echo {presets}`",
            }
        elif words := _words(command, action.dest):
            action.choices = tuple(words)
    preamble = {"bash": _BASH.format(presets=presets), "zsh": _ZSH.format(presets=presets)}
    shtab.add_argument_to(parser, preamble=preamble)
    return parser


def _actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    (commands,) = (one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    for name, command in commands.items():
        yield from ((name, action) for action in command._actions)


def _presets() -> Iterable[str]:
    from tallystick.presets import PRESETS

    return PRESETS


def _words(command: str, option: str) -> Iterable[str]:
    """Return the known words of an option of a command; () if any word will do."""
    if command == "quiz" and option == "model":
        from tallystick.course.quiz import MODELS

        return MODELS
    if command not in ("memory", "fit", "serve", "compute"):
        return ()
    from tallystick.answers.devices import DEVICES
    from tallystick.answers.memory.activations import ATTENTION, LOSS, RECOMPUTE
    from tallystick.answers.memory.model_states import PRECISIONS
    from tallystick.answers.memory.number_formats import CACHE_FORMATS, WEIGHT_FORMATS
    from tallystick.answers.memory.optimizers import OPTIMIZERS
    from tallystick.answers.serve.serve import CACHES, ENGINES
    from tallystick.answers.serve.weight_format import QUANTIZATIONS

    known: dict[str, Iterable[str]] = {
        "device": (*DEVICES, "auto"),
        "dtype": WEIGHT_FORMATS,
        "kv_dtype": CACHE_FORMATS,
        "engine": ENGINES,
        "quantization": QUANTIZATIONS,
        "kv_cache_dtype": CACHES,
        "optimizer": OPTIMIZERS,
        "precision": PRECISIONS,
        "attention": ATTENTION,
        "recompute": RECOMPUTE,
        "loss": LOSS,
    }
    return known.get(option, ())
