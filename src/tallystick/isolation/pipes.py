"""Exchange JSON messages with a child process: eight bytes of length, then the text."""

from __future__ import annotations

import json
import os
from typing import IO, Any, BinaryIO

LENGTH_BYTES = 8


def send(message: Any, pipe: IO[bytes]) -> None:
    """Write a message as JSON to a pipe."""
    send_encoded(json.dumps(message).encode(), pipe)


def send_encoded(content: bytes, pipe: IO[bytes]) -> None:
    """Write a message that is already encoded as JSON to a pipe."""
    pipe.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read the bytes of the next message; return None if the other process has ended."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    content = pipe.read(length)
    return content if len(head) == LENGTH_BYTES and len(content) == length else None


def take_over() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes that this process was started with: requests and replies.

    Then redirect standard input to the null device, and standard output to standard error. So no
    prompt reads a request, and printed text does not mix with replies.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies
