"""Who counts right: every causal language model type of transformers with its default config, and
each tool's count.

    python benchmarks/exactness.py          # a line for each tool
    python benchmarks/exactness.py --all    # and one for each type

The truth is the number of elements in the distinct Parameters of the model that transformers builds
on the meta device. A type whose default config builds no model is left out, and named. Exits with 1
if tallystick is wrong on a type that it knows natively.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import peers

LIMIT_SECONDS = 60  # for one type, all tools together
FAR = 0.01  # a wrong count further from the truth than this would be seen even in a rounded figure

TRUTH = "truth"
TALLYSTICK, TORCHINFO, CALFLOPS = "tallystick", "torchinfo", "calflops"
ACCELERATE, ACCELERATE_BARE = "accelerate", "accelerate, buffers left out"
TOOLS = (TALLYSTICK, ACCELERATE, ACCELERATE_BARE, TORCHINFO, CALFLOPS)


@dataclass
class Type:
    """What was learned of one model type: a count, or why there is none, under each tool's name and
    `TRUTH`.
    """

    name: str
    native: bool
    counts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    calflops_ran: bool = False

    @property
    def truth(self) -> int:
        """The count that is right."""
        return self.counts[TRUTH]

    def verdict(self, tool: str) -> str:
        """right, wrong or failed."""
        if tool not in self.counts:
            return "failed"
        return "right" if self.counts[tool] == self.truth else "wrong"


# -- counting, in a process for each type ---------------------------------------------------------


def answers(name: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each tool's name and its count of a type's default config; the truth first, what may not
    survive last.
    """
    import transformers

    import tallystick

    model: Any = None

    def truth() -> int:
        nonlocal model
        model = peers.build_on_meta(transformers.AutoConfig.for_model(name))
        return peers.distinct_parameters(model)

    def ours() -> int:  # from what a saved config.json would hold
        return tallystick.count(json.loads(transformers.AutoConfig.for_model(name).to_json_string())).total

    yield TRUTH, truth
    if model is None:
        return
    yield TALLYSTICK, ours
    yield TORCHINFO, lambda: peers.torchinfo_total(model)
    yield CALFLOPS, lambda: peers.calflops_total(model)
    # Last: init_empty_weights makes each tensor in real memory before it moves it to the meta
    # device.
    yield ACCELERATE, lambda: peers.accelerate_estimate(transformers.AutoConfig.for_model(name))


def answer_all(name: str, pipe: Connection) -> None:
    """Send (tool, its count, None) or (tool, None, why not) as each comes, then None."""
    with contextlib.suppress(OSError):  # if memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        for tool, count in answers(name):
            try:
                pipe.send((tool, count(), None))
            except Exception as error:  # a tool may raise whatever it likes
                pipe.send((tool, None, f"{type(error).__name__}: {' '.join(str(error).split())}"))
    pipe.send(None)


def ask(name: str, native: bool) -> Type:
    """All answers on one type. What has not come when the process dies or its time is up has
    failed.
    """
    found = Type(name, native)
    context = multiprocessing.get_context("fork")  # the imports are done once, in the parent
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=answer_all, args=(name, sender))
    process.start()
    sender.close()
    end, lost = time.monotonic() + LIMIT_SECONDS, f"no answer in {LIMIT_SECONDS} s"
    try:
        while receiver.poll(max(0, end - time.monotonic())):
            message = receiver.recv()
            if message is None:
                break
            record(found, *message)
    except EOFError:
        lost = "its process died"
    process.kill()
    process.join()
    for tool in TOOLS:
        if tool not in found.counts:
            found.failures.setdefault(tool, lost)
    return found


def record(found: Type, tool: str, count: Any, why_not: str | None) -> None:
    """Write one answer down; accelerate's and calflops' say two things."""
    if why_not is not None:
        found.failures[tool] = why_not
        if tool == ACCELERATE:
            found.failures[ACCELERATE_BARE] = why_not
    elif isinstance(count, peers.Estimate):
        found.counts[ACCELERATE], found.counts[ACCELERATE_BARE] = count
    elif isinstance(count, peers.Calflops):
        found.counts[CALFLOPS], found.calflops_ran = count
    else:
        found.counts[tool] = count


# -- the table ------------------------------------------------------------------------------------


def print_table(types: list[Type]) -> None:
    """A line for each tool, and tallystick's two ways apart."""
    native, others = [t for t in types if t.native], [t for t in types if not t.native]
    lines = [
        (f"tallystick {version('tallystick')}, native", TALLYSTICK, native),
        ("tallystick, built by transformers", TALLYSTICK, others),
        (f"accelerate {version('accelerate')}: bytes / 4", ACCELERATE, types),
        ("accelerate: its model, no buffers", ACCELERATE_BARE, types),
        (f"torchinfo {version('torchinfo')}", TORCHINFO, types),
        (f"calflops {version('calflops')}", CALFLOPS, types),
    ]
    print(f"{'':36}{'right':>8}{'wrong':>8}{'failed':>8}{'of':>8}{'off by > 1%':>14}")
    for label, tool, asked in lines:
        verdicts = [t.verdict(tool) for t in asked]
        far = sum(tool in t.counts and abs(t.counts[tool] - t.truth) > FAR * t.truth for t in asked)
        print(f"{label:36}" + "".join(f"{verdicts.count(v):8}" for v in ("right", "wrong", "failed")), end="")
        print(f"{len(asked):8}{far:14}")
    ran = sum(t.calflops_ran for t in types)
    print(f"\ncalflops' forward pass went through on {ran} types; for the others its count was taken alone.")


def print_failures(types: list[Type], *, ours_only: bool) -> None:
    """Who was wrong or failed on what, and how."""
    for tool in (TALLYSTICK,) if ours_only else TOOLS:
        for found in types:
            if found.verdict(tool) == "wrong":
                print(f"{tool}: {found.name}: {found.counts[tool]:,}, in truth {found.truth:,}")
        for found in types:
            if found.verdict(tool) == "failed":
                print(f"{tool}: {found.name}: failed: {found.failures[tool][:150]}")


def print_types(types: list[Type]) -> None:
    """A line for each type: the truth, and beside each tool ✓, the difference, or what failed."""
    print(f"{'type':28}{'truth':>20}" + "".join(f"{tool[:22]:>24}" for tool in TOOLS))
    for found in types:
        cells = {"right": "✓", "failed": "failed"}
        marks = [cells.get(found.verdict(t)) or f"{found.counts[t] - found.truth:+,}" for t in TOOLS]
        name = found.name + ("" if found.native else " °")
        print(f"{name:28}{found.truth:20,}" + "".join(f"{mark:>24}" for mark in marks))
    print("° not native: built by transformers. ✓ right; else the difference from the truth.\n")


def main() -> int:
    """Ask all, print, and say whether a native type was wrong."""
    parser = argparse.ArgumentParser(description="Who counts right on the default configs of transformers.")
    parser.add_argument("--all", action="store_true", help="print each type, and what each tool got wrong")
    parser.add_argument("--types", nargs="+", metavar="TYPE", help="only these model types")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="types at a time (default: all cores)")
    options = parser.parse_args()

    os.environ["HF_HUB_OFFLINE"] = "1"  # a config that asks the hub for a part has no default that builds
    warnings.simplefilter("ignore")
    import accelerate  # noqa: F401  # these imports are for the processes that are forked from this one
    import calflops  # noqa: F401
    import torchinfo  # noqa: F401
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from tallystick.architectures import known

    transformers.logging.set_verbosity_error()
    native, start = set(known()), time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        names = sorted(options.types or MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
        asked = list(pool.map(lambda name: ask(name, name in native), names))
    types = [t for t in asked if TRUTH in t.counts]
    unbuilt = [t.name for t in asked if TRUTH not in t.counts]

    if options.all:
        print_types(types)
    print(f"{len(types)} causal language model types of transformers {version('transformers')}, default configs\n")
    print_table(types)
    print(f"{len(unbuilt)} of {len(asked)} types left out: the default config builds no model: {', '.join(unbuilt)}")
    print(f"{time.monotonic() - start:.0f} s\n")
    print_failures(types, ours_only=not options.all)
    return int(any(t.native and t.verdict(TALLYSTICK) != "right" for t in types))


if __name__ == "__main__":
    sys.exit(main())
