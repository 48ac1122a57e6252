"""``tallystick fit``: test whether a model fits on a device; if not, which changes help."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import fit, fit_engine, serve
from tallystick.cli.options import (
    DEVICE_HELP,
    add_command,
    add_part,
    add_source,
    device_given,
    layers,
    ledger_of,
    length,
    share,
)
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json
from tallystick.cli.run_options import add_run, run_of
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick fit llama-3-8b                         all devices, three dtypes
  tallystick fit llama-3-8b --device rtx4090 --sequence 8192
  tallystick fit gpt2-xl --device 16GB --mode training
  tallystick fit ./checkpoint --device auto --format json
  tallystick fit qwen3-32b --engine vllm --sequence 32k
"""
# An option of a run -> its name in `tallystick.serve`.
_OF_ENGINE = {
    "dtype": "dtype", "kv_dtype": "kv_cache_dtype", "batch": "max_num_seqs", "sequence": "max_model_len", "tp": "tp", "pp": "pp",
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "fit", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--device", metavar="NAME", help=f"{DEVICE_HELP} (default: list all devices)")
    add_run(command, more_dtypes="; several without --device: bf16,int4")
    add = command.add_argument
    add("--engine", help="does it start with vllm, sglang or llama.cpp, and how many tokens does it hold?")
    add("--engine-version", metavar="N", help="such as 0.19 (with --engine)")
    add("--quantization", metavar="NAME", help="such as fp8 or awq (with --engine)")
    add(
        "--gpu-memory-utilization",
        type=share,
        metavar="SHARE",
        help="share for the engine, such as 0.9 (with --engine)",
    )
    add("--gpu-layers", "--ngl", type=layers, metavar="N", help="layers on the device, or auto (with llama.cpp)")
    add("--input", dest="input_tokens", metavar="N", help="input tokens of a request (with --engine)")
    add("--output", dest="output_tokens", metavar="N", help="output tokens of a request (with --engine)")
    add_exit_code(command, "it does not fit", default=True)
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    given = _for_engine(options)
    ledger = ledger_of(options)
    if options.engine is not None:
        return _with_engine(ledger, options, given)
    if options.device is None:
        return _on_all(ledger, options)
    answer = fit(ledger, device_given(options.device), **run_of(options))
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.fit import show_fit

        print_answer(options.format, show_fit, answer, title=answer.asked.source)
    return int(options.exit_code and not answer.fits)


def _on_all(ledger: Ledger, options: argparse.Namespace) -> int:
    from tallystick.answers.fit_all import fit_all

    given = run_of(options)
    dtypes = given.pop("dtype", "")
    answer = fit_all(ledger, dtypes.split(",") if dtypes else (), **given)
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.fit import show_fit_all

        print_answer(options.format, show_fit_all, answer)
    return int(options.exit_code and not answer.fits)


def _for_engine(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of an engine, by the names of `serve`.

    Raises:
        BadInput: for an option of an engine without one, and for one of a run that no engine has.
    """
    names = ("engine_version", "quantization", "gpu_memory_utilization", "gpu_layers", "input_tokens", "output_tokens")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.engine is None:
        for name in given:
            raise BadInput(f"{_flag(name)} is of an engine: give --engine too", code="conflicting-options")
        return given
    for name in ("input_tokens", "output_tokens"):
        if name in given:
            given[name] = length(given[name])
    for name, value in run_of(options).items():
        if name not in _OF_ENGINE and (name, value) != ("mode", "inference"):
            raise BadInput(f"{_flag(name)} is not of an engine: leave out --engine", code="conflicting-options")
        if name in _OF_ENGINE:
            given[_OF_ENGINE[name]] = value
    return given


def _flag(name: str) -> str:
    return f"--{name.removesuffix('_tokens').replace('_', '-').replace('targets', 'lora-target')}"


def _with_engine(ledger: Ledger, options: argparse.Namespace, given: dict[str, Any]) -> int:
    if options.device is not None:
        plan = serve(ledger, engine=options.engine, device=device_given(options.device), **given)
        if options.format == "json":
            print_json(plan.to_dict())
        else:
            from tallystick.report.serve import show_serve

            print_answer(options.format, show_serve, plan)
        return int(options.exit_code and not plan.starts)
    answer = fit_engine(ledger, options.engine, **given)
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.fit_engine import show_fit_engine

        print_answer(options.format, show_fit_engine, answer)
    return int(options.exit_code and not answer.starts)
