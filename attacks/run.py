"""Run attacks by name, or all: what each tries, and what tallystick said."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import ModuleType
from typing import IO, NamedTuple

ATTACKS = Path(__file__).parent
SECONDS = 10  # of CPU
IMPORTING = 5  # more, where transformers is imported to build
MEMORY = 200_000_000  # bytes above what starting takes, and above the header that is read
BUILDING = 1_200_000_000  # bytes where transformers builds: what its process may take, and what its libraries map


class Outcome(NamedTuple):
    """What a run of the command line did."""

    code: int  # negative: the signal that ended it
    output: str
    errors: str
    seconds: float  # of CPU, with the processes that it started and waited for
    memory: int  # bytes, at most, of the process, or of one that it waited for
    asked: bool  # whether it connected to where the hub is said to be


def names() -> list[str]:
    """Each attack of this folder."""
    return sorted(path.stem for path in ATTACKS.glob("*.py") if path.stem != "run")


def load(name: str) -> ModuleType:
    """The file of an attack as a module."""
    spec = spec_from_file_location(f"attacks_{name}", ATTACKS / f"{name}.py")
    if name not in names() or spec is None or spec.loader is None:
        raise SystemExit(f"there is no attack {name!r}: {', '.join(names())}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(words: list[str], folder: Path) -> Outcome:
    """Run `tallystick` with these words in a folder, as a user of a terminal who answers yes to
    everything.

    A run that takes six times the CPU that it may is ended.
    """
    with (
        socket.create_server(("127.0.0.1", 0)) as hub,
        TemporaryDirectory() as home,
        TemporaryFile() as answers,
        TemporaryFile() as output,
        TemporaryFile() as errors,
    ):
        hub.setblocking(False)
        answers.write(b"y\n" * 1000)
        answers.seek(0)
        address = f"http://127.0.0.1:{hub.getsockname()[1]}"
        hosts = {"HF_ENDPOINT": address, "HTTP_PROXY": address, "HTTPS_PROXY": address, "HF_HOME": home}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tallystick", *words],
            cwd=folder,
            env={**os.environ, **hosts, "COLUMNS": "80"},
            stdin=answers,
            stdout=output,
            stderr=errors,
            preexec_fn=_limit,  # noqa: PLW1509 - this process has no threads
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        kilobyte = 1 if sys.platform == "darwin" else 1024
        try:
            hub.accept()[0].close()
            asked = True
        except BlockingIOError:
            asked = False
        return Outcome(
            process.returncode,
            _text(output),
            _text(errors),
            used.ru_utime + used.ru_stime,
            used.ru_maxrss * kilobyte,
            asked,
        )


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (6 * SECONDS, 6 * SECONDS))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="backslashreplace")


def main() -> None:
    """Each attack that is named, in a folder of its own."""
    for name in sys.argv[1:] or names():
        attack = load(name)
        with TemporaryDirectory() as folder:
            outcome = run(attack.attack(Path(folder)), Path(folder))
        print(f"{name}: {attack.__doc__}\n  exit {outcome.code}, {outcome.seconds:.1f} s, {outcome.memory:,} bytes")
        print("  " + (outcome.errors or outcome.output).replace("\n", "\n  "))


if __name__ == "__main__":
    main()
