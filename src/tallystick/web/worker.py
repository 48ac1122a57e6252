"""The worker process: answers requests in turn, so that a slow one can be ended."""

from __future__ import annotations

import gc
import json
import sys
from typing import Any, BinaryIO

from tallystick.errors import BadInput
from tallystick.isolation.limits import limit_memory, no_core_dump
from tallystick.isolation.pipes import receive, send_encoded, take_over
from tallystick.unforeseen import line_of
from tallystick.web.answers import answers
from tallystick.web.request import forget

MEMORY = 2_000_000_000  # bytes, on Linux; torch, transformers and a large header take about 600 MB
MOST_REPLY = 50_000_000  # bytes; the answer to the largest header has a third of this


def serve(source: str | None, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until their stream ends."""
    while (request := receive(requests)) is not None:
        send_encoded(reply_to(request, source), replies)


def reply_to(body: bytes, source: str | None) -> bytes:
    """Return the JSON reply to a request; it contains ``error`` if there is no answer."""
    try:
        return _encoded(answers(_request(body), source))
    except BaseException as error:  # the next request must still be answered
        line = line_of(error)
        if isinstance(error, MemoryError):
            forget()
        return _encoded({"error": line})


def _request(body: bytes) -> Any:
    try:
        return json.loads(body)
    except RecursionError:
        raise BadInput("the request is nested too deeply", code="too-large") from None
    except ValueError:
        raise BadInput("the request is not JSON in UTF-8", code="malformed") from None


def _encoded(reply: dict[str, Any]) -> bytes:
    encoded = json.dumps(reply).encode()
    if len(encoded) > MOST_REPLY:
        raise BadInput(
            f"the answer has {len(encoded):,} bytes, more than the {MOST_REPLY:,} allowed",
            code="too-large",
        )
    return encoded


def main() -> None:
    """Answer the requests on standard input, within this process's memory limit."""
    no_core_dump()
    limit_memory(MEMORY)
    gc.set_threshold(200_000)  # as on the command line
    serve(sys.argv[1] if len(sys.argv) > 1 else None, *take_over())


if __name__ == "__main__":
    main()
