"""The worker as the server sees it: asked in turn, ended when it takes too long, and started again."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process

from tallystick.web.worker import LENGTH_BYTES

SECONDS = 20.0  # for one answer; building a foreign model type with transformers takes some


class Worker:
    """One process that answers for one server."""

    def __init__(self, source: str | None, *, seconds: float = SECONDS) -> None:
        self.source, self.seconds = source, seconds
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, body: bytes) -> bytes:
        """The JSON of the answer to a request."""
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
        if self._process is None:
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
                process.kill()
            await process.communicate()  # until its pipes are closed too
