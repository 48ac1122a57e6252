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
from contextlib import ExitStack
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

LONGEST = 300  # seconds, from the start of the ranks to the end of the last
LONGEST_WAIT = 120  # seconds that one rank waits for another
_LOOK = 0.05  # seconds between two looks at whether a rank has ended


class RanksFailed(Exception):
    """A rank ended badly, or none of them ended in time."""


class Ranks:
    """Ranks that run one function; they start when this is entered, and none is left when it is left."""

    def __init__(self, count: int, function: str, arguments: list[Any], longest: float = LONGEST) -> None:
        """What to run.

        Args:
            count: how many processes.
            function: as ``package.module:function``.
            arguments: what it is called with in each rank; JSON, as what it returns must be.
            longest: seconds after which ranks that still run are ended.
        """
        self._task = {"count": count, "function": function, "arguments": arguments}
        self._ends = time.monotonic() + longest
        self._longest = longest
        self._stack = ExitStack()
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Ranks:
        folder = self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "task").write_text(json.dumps(self._task), encoding="utf-8")
        # What is importable here is there, the user's own modules among it; torchrun gives each rank one thread too.
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": paths}
        for rank in range(int(str(self._task["count"]))):
            with open(folder / f"said.{rank}", "wb") as said:
                process = subprocess.Popen(  # noqa: S603 - this very file
                    [sys.executable, "-m", __name__, str(folder)],
                    env={**environment, "RANK": str(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                )
            self._processes.append(process)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        self._stack.close()

    def results(self) -> list[Any]:
        """What the function returned in each rank.

        Raises:
            RanksFailed: as soon as one of them ended badly, or when their time is over.
        """
        while any(code is None for code in self._codes()):
            if time.monotonic() > self._ends:
                running = ", ".join(str(rank) for rank, code in enumerate(self._codes()) if code is None)
                raise RanksFailed(f"rank {running} did not end within {self._longest:g} seconds")
            time.sleep(_LOOK)
        return [json.loads((self._folder / f"result.{rank}").read_bytes()) for rank in range(len(self._processes))]

    def _codes(self) -> list[int | None]:
        codes = [process.poll() for process in self._processes]
        for rank, code in enumerate(codes):
            if code:
                said = (self._folder / f"said.{rank}").read_text(encoding="utf-8", errors="replace").split("\n")
                last = (
                    next((line for line in reversed(said) if line.strip()), "").removeprefix(f"[rank{rank}]:").strip()
                )
                raise RanksFailed(f"rank {rank} ended with {code}: {last}".rstrip(": "))
        return codes


def _main(folder: Path) -> None:
    from torch import distributed

    task, rank = json.loads((folder / "task").read_bytes()), int(os.environ["RANK"])
    store = distributed.FileStore(str(folder / "store"), task["count"])
    wait = timedelta(seconds=LONGEST_WAIT)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=task["count"], timeout=wait)
    module, _, name = task["function"].partition(":")
    result = getattr(import_module(module), name)(*task["arguments"])
    (folder / f"result.{rank}").write_text(json.dumps(result), encoding="utf-8")
    distributed.destroy_process_group()


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
