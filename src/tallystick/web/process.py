"""The worker as the server sees it: asked in turn, ended when it takes too long, and started again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from tallystick.isolation.pipes import LENGTH_BYTES

SECONDS = 20.0  # for one answer; building a foreign model type with transformers takes some
MOST_WAITING = 8  # requests; the page sends one at a time


class Worker:
    """One process that answers for one server."""

    def __init__(self, source: str | None, *, seconds: float = SECONDS) -> None:
        self.source, self.seconds = source, seconds
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def ask(self, body: bytes) -> bytes:
        """The JSON of the answer to a request. Where it is cancelled while it is computed, the process is ended."""
        if self._waiting == MOST_WAITING:
            return json.dumps({"error": f"{MOST_WAITING} requests are waiting already: try again"}).encode()
        self._waiting += 1
        try:
            return await self._in_turn(body)
        finally:
            self._waiting -= 1

    async def _in_turn(self, body: bytes) -> bytes:
        async with self._turn:
            try:
                return await asyncio.wait_for(self._ask(body), self.seconds)
            except TimeoutError:
                why = f"this takes more than {self.seconds:g} seconds, and was stopped"
            except (asyncio.IncompleteReadError, ConnectionError):
                why = "the process that computes ended over this"
            except asyncio.CancelledError:  # an answer half read would be taken for the next one's
                await self.end()
                raise
            await self.end()
            return json.dumps({"error": why}).encode()

    async def _ask(self, body: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            words = [] if self.source is None else [self.source]
            self._process = await asyncio.create_subprocess_exec(
                # -P: a json.py in the current folder is not Python's own.
                sys.executable,
                "-P",
                "-m",
                "tallystick.web.worker",
                *words,
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # Ctrl-C in the terminal is for the server, which ends it
            )
        requests, replies = self._process.stdin, self._process.stdout
        if requests is None or replies is None:
            raise ConnectionError
        requests.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        await requests.drain()
        length = int.from_bytes(await replies.readexactly(LENGTH_BYTES), "big")
        return await replies.readexactly(length)

    async def end(self) -> None:
        """End the process; the next request starts another."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    _kill(process)
            await process.communicate()  # until its pipes are closed too


def _kill(process: Process) -> None:
    """Kill it, and where it leads a group of processes those that it started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
