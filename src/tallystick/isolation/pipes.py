"""JSON between a process and another that it started: the number of bytes in eight, then so many bytes."""

from __future__ import annotations

import json
import os
from typing import IO, Any, BinaryIO

LENGTH_BYTES = 8


def send(message: Any, pipe: IO[bytes]) -> None:
    """Write a message."""
    send_encoded(json.dumps(message).encode(), pipe)


def send_encoded(content: bytes, pipe: IO[bytes]) -> None:
    """Write a message that is JSON already."""
    pipe.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """The bytes of the next message; None where the other process has ended."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    content = pipe.read(length)
    return content if len(head) == LENGTH_BYTES and len(content) == length else None


def take_over() -> tuple[BinaryIO, BinaryIO]:
    """The pipes that this process was started with, as requests and replies.

    Standard input is then empty, and standard output is standard error: no prompt reads a request, and nothing that is
    printed stands between replies.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies
