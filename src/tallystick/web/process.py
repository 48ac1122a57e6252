"""Control the worker process: ask it in turn, end it if it is too slow, restart it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from tallystick.isolation.pipes import LENGTH_BYTES

SECONDS = 20.0  # for one answer; transformers needs some to build a foreign model type
MOST_WAITING = 8  # queued requests; the page sends one at a time


class Worker:
    """One worker process of one server."""

    def __init__(self, source: str | None, *, seconds: float = SECONDS) -> None:
        self.source, self.seconds = source, seconds
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def ask(self, body: bytes) -> bytes:
        """Return the JSON of the answer to a request; cancelling the call ends the process."""
        if self._waiting == MOST_WAITING:
            return json.dumps({"error": f"{MOST_WAITING} requests are already waiting: try again"}).encode()
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
                why = f"this took more than {self.seconds:g} seconds and was stopped"
            except (asyncio.IncompleteReadError, ConnectionError):
                why = "the worker process crashed on this request"
            except asyncio.CancelledError:  # half an answer would be read as the next request's answer
                await self.end()
                raise
            await self.end()
            return json.dumps({"error": why}).encode()

    async def _ask(self, body: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            words = [] if self.source is None else [self.source]
            self._process = await asyncio.create_subprocess_exec(
                # -P: a json.py in the current folder must not shadow Python's own.
                sys.executable,
                "-P",
                "-m",
                "tallystick.web.worker",
                *words,
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # Ctrl-C in the terminal is for the server, which ends the worker
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
    """Kill the process, and its process group if it leads one."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
