"""Run one function in several processes, the ranks of one gloo group, with a time limit.

`python -m tallystick.live.ranks FOLDER` is one rank. The folder holds the task, the group's
store and the results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

LONGEST = 300  # seconds from the start of the ranks until all must have ended
LONGEST_WAIT = 120  # seconds that one rank waits for another
_LOOK = 0.05  # seconds between two checks whether a rank has ended


class RanksFailed(Exception):
    """A rank failed or timed out."""


class Ranks(NamedTuple):
    """The running processes, one per rank."""

    processes: Sequence[subprocess.Popen[bytes]]
    folder: Path
    longest: float
    started: float

    def results(self) -> list[Any]:
        """Wait for all ranks, and return what the function returned in each.

        Raises:
            RanksFailed: as soon as a rank fails, or when the time limit is reached.
        """
        while running := [str(rank) for rank in range(len(self.processes)) if not self._done(rank)]:
            if time.monotonic() > self.started + self.longest:
                raise RanksFailed(f"rank {', '.join(running)} did not finish within {self.longest:g} seconds")
            time.sleep(_LOOK)
        return [json.loads(_result(self.folder, rank).read_bytes()) for rank in range(len(self.processes))]

    def _done(self, rank: int) -> bool:
        """Return whether a rank has its result; a later crash in torch's exit does not matter."""
        code = self.processes[rank].poll()  # polled first: the rank may write and end between two calls
        if _result(self.folder, rank).exists():
            return True
        if code is None:
            return False
        said = (self.folder / f"said.{rank}").read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(said) if line.strip()), "")
        last = last.removeprefix(f"[rank{rank}]:").strip()  # prefix that torch adds
        raise RanksFailed(f"rank {rank} exited with code {code}: {last}".rstrip(": "))


def _result(folder: Path, rank: int) -> Path:
    return folder / f"result.{rank}"


@contextmanager
def ranks(count: int, function: str, arguments: Sequence[Any], longest: float = LONGEST) -> Iterator[Ranks]:
    """Start ranks that run one function; kill those still running when the block ends.

    Args:
        count: number of ranks.
        function: as ``package.module:function``.
        arguments: its arguments in each rank; they and the result must be JSON.
        longest: time limit in seconds for all ranks.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder, processes = Path(name), list[subprocess.Popen[bytes]]()
        task = {"count": count, "function": function, "arguments": arguments}
        (folder / "task").write_text(json.dumps(task), encoding="utf-8")
        # Ranks can import what this process can, including the user's modules; -P adds no further
        # folder. Each rank has one thread, as under torchrun.
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": paths}
        for rank in range(count):
            with open(folder / f"said.{rank}", "wb") as said:
                process = subprocess.Popen(  # noqa: S603 - this very file
                    [sys.executable, "-P", "-m", __name__, str(folder)],
                    env={**environment, "RANK": str(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                )
            running.callback(_end, process)
            processes.append(process)
        yield Ranks(processes, folder, longest, time.monotonic())


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _main(folder: Path) -> None:
    from torch import distributed

    task, rank = json.loads((folder / "task").read_bytes()), int(os.environ["RANK"])
    store = distributed.FileStore(str(folder / "store"), task["count"])
    wait = timedelta(seconds=LONGEST_WAIT)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=task["count"], timeout=wait)
    module, _, name = task["function"].partition(":")
    result = getattr(import_module(module), name)(*task["arguments"])
    written = folder / f"writing.{rank}"
    written.write_text(json.dumps(result), encoding="utf-8")
    written.rename(_result(folder, rank))  # atomic, so that a result is complete once it exists
    distributed.barrier()  # no rank leaves while another still needs it
    distributed.destroy_process_group()


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
