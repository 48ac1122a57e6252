"""The worker process: answers requests in turn, so that a slow one can be ended."""

from __future__ import annotations

import gc
import sys
from typing import BinaryIO

from tallystick.isolation.limits import limit_memory, no_core_dump
from tallystick.isolation.pipes import receive, send_encoded, take_over
from tallystick.web.reply import reply_to

MEMORY = 2_000_000_000  # bytes, on Linux; torch, transformers and a large header take about 600 MB


def serve(source: str | None, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until their stream ends."""
    while (request := receive(requests)) is not None:
        send_encoded(reply_to(request, source), replies)


def main() -> None:
    """Answer the requests on standard input, within this process's memory limit."""
    no_core_dump()
    limit_memory(MEMORY)
    gc.set_threshold(200_000)  # as on the command line
    serve(sys.argv[1] if len(sys.argv) > 1 else None, *take_over())


if __name__ == "__main__":
    main()
