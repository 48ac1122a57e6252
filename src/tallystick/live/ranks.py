"""Processes that run one function together, as the ranks of one gloo group; they end, however they end.

`python -m tallystick.live.ranks FOLDER` is one of them: the folder holds the task, meets the ranks, takes the results.
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

LONGEST = 300  # seconds, from the start of the ranks to the end of the last
LONGEST_WAIT = 120  # seconds that one rank waits for another
_LOOK = 0.05  # seconds between two looks at whether a rank has ended


class RanksFailed(Exception):
    """A rank ended badly, or not in time."""


class Ranks(NamedTuple):
    """Processes that run one function."""

    processes: Sequence[subprocess.Popen[bytes]]
    folder: Path
    longest: float
    started: float

    def results(self) -> list[Any]:
        """What the function returned in each rank.

        Raises:
            RanksFailed: as soon as one of them ended badly, or when their time is over.
        """
        while running := [str(rank) for rank in range(len(self.processes)) if not self._done(rank)]:
            if time.monotonic() > self.started + self.longest:
                raise RanksFailed(f"rank {', '.join(running)} did not end within {self.longest:g} seconds")
            time.sleep(_LOOK)
        return [json.loads(_result(self.folder, rank).read_bytes()) for rank in range(len(self.processes))]

    def _done(self, rank: int) -> bool:
        """Whether a rank has answered; how it ended then is torch's affair, whose threads may abort it at its exit."""
        code = self.processes[rank].poll()  # asked first: it may answer and end between two questions
        if _result(self.folder, rank).exists():
            return True
        if code is None:
            return False
        said = (self.folder / f"said.{rank}").read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(said) if line.strip()), "")
        last = last.removeprefix(f"[rank{rank}]:").strip()  # torch's
        raise RanksFailed(f"rank {rank} ended with {code}: {last}".rstrip(": "))


def _result(folder: Path, rank: int) -> Path:
    return folder / f"result.{rank}"


@contextmanager
def ranks(count: int, function: str, arguments: Sequence[Any], longest: float = LONGEST) -> Iterator[Ranks]:
    """Start ranks that run one function; none is left when this is left.

    Args:
        count: how many.
        function: as ``package.module:function``.
        arguments: what it is called with in each rank; JSON, as what it returns must be.
        longest: seconds after which ranks that still run have failed.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder, processes = Path(name), list[subprocess.Popen[bytes]]()
        task = {"count": count, "function": function, "arguments": arguments}
        (folder / "task").write_text(json.dumps(task), encoding="utf-8")
        # What is importable here is there, the user's own modules among it, and no folder more (-P). Each has one thread,
        # as torchrun has it.
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
    written.rename(_result(folder, rank))  # whole, as soon as it is seen
    distributed.barrier()  # nobody leaves while another still needs it
    distributed.destroy_process_group()


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
