"""``tallystick generate``: generate text from a checkpoint, printed as it is generated."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from dataclasses import asdict
from typing import Any

from tallystick.cli import streams
from tallystick.cli.options import add_checkpoint, add_command, text_model, whole
from tallystick.cli.output import add_format, print_json

EXAMPLES = """\
Without --temperature the most probable token is taken. A filter or a seed sets
the temperature to 1. Several prompts are one batch, printed at the end.

examples:
  tallystick generate ./checkpoint --prompt Once --tokens 50
  tallystick generate ./checkpoint --prompt Hello --top-p 0.95 --seed 1
  tallystick generate ./checkpoint --prompt Q: --stop Q: --format json
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "generate", EXAMPLES)
    add_checkpoint(command)
    command.add_argument(
        "--prompt", action="append", help="text to continue; repeatable (default: the start of a text)"
    )
    command.add_argument(
        "--tokens", type=whole, metavar="N", help="most tokens to generate (default: 100, or what fits)"
    )
    command.add_argument(
        "--temperature", type=float, metavar="T", help="sampling temperature; 0 takes the most probable token"
    )
    command.add_argument("--top-k", type=whole, metavar="K", help="sample from the K most probable tokens")
    command.add_argument(
        "--top-p", type=float, metavar="P", help="sample from the fewest tokens with total probability P"
    )
    command.add_argument(
        "--min-p", type=float, metavar="P", help="sample from tokens at least P times as probable as the best"
    )
    command.add_argument(
        "--repetition-penalty",
        type=float,
        default=1.0,
        metavar="X",
        help="above 1 makes repeated tokens less probable (default: 1)",
    )
    command.add_argument("--stop", action="append", default=[], metavar="TEXT", help="stop at this text; repeatable")
    command.add_argument("--seed", type=whole, metavar="N", help="random seed (default: a new one, which is printed)")
    command.add_argument(
        "--compile", action="store_true", help="compile the decoding step; pays off for long texts on CUDA"
    )
    add_format(command, "text", "json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    drawn = (options.top_k, options.top_p, options.min_p, options.seed)
    temperature = options.temperature
    if temperature is None:
        temperature = 0.0 if all(value is None for value in drawn) else 1.0
    model = text_model(options)
    from tallystick.models.sampling import Sampling

    sampling = Sampling(temperature, options.top_k, options.top_p, options.min_p, options.repetition_penalty)
    seed = secrets.randbits(32) if temperature and options.seed is None else options.seed
    prompts = options.prompt or [""]
    writing = model.write(
        prompts, tokens=options.tokens, sampling=sampling, stop=options.stop, seed=seed, compiled=options.compile
    )
    streamed = options.format == "text" and len(prompts) == 1
    if streamed:
        _show(prompts[0])
    start = time.perf_counter()
    for pieces in writing:
        if streamed:
            _show(pieces[0])
        if streams.reader_left():
            return 0
    seconds = max(time.perf_counter() - start, 1e-9)  # avoids an infinite rate if the clock does not advance
    written = sum(text.tokens for text in writing.continuations)
    if options.format == "json":
        answer = {"source": options.checkpoint, "seed": seed, "read": writing.read, "written": written}
        texts = [asdict(text) for text in writing.continuations]
        print_json({**answer, "seconds": seconds, "tokens_per_second": written / seconds, "texts": texts})
        return 0
    if not streamed:
        _show("\n\n".join(text.prompt + text.text for text in writing.continuations))
    _show("\n")
    said = "" if seed is None else f", seed {seed}"
    sys.stderr.write(f"{written:,} tokens in {seconds:.2f} s, {written / seconds:,.1f} a second{said}\n")
    return 0


def _show(text: str) -> None:
    """Print at once, without control characters in a terminal."""
    if sys.stdout.isatty():
        text = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
    sys.stdout.write(text)
    sys.stdout.flush()
