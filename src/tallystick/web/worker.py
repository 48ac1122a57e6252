"""The process that answers, one request after another, so that one which takes too long can be ended.

On its standard input and output: the number of bytes in eight, then so many bytes of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any, BinaryIO

from tallystick.errors import BadInput
from tallystick.web.answers import answers

LENGTH_BYTES = 8


def serve(source: str | None, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer until the requests end."""
    while length := requests.read(LENGTH_BYTES):
        reply = json.dumps(reply_to(requests.read(int.from_bytes(length, "big")), source)).encode()
        replies.write(len(reply).to_bytes(LENGTH_BYTES, "big") + reply)
        replies.flush()


def reply_to(body: bytes, source: str | None) -> dict[str, Any]:
    """What is answered to the bytes of a request; ``error`` where they are none."""
    try:
        request = json.loads(body)
    except RecursionError:
        return {"error": "the request is nested too deeply"}
    except ValueError:
        return {"error": "the request is no JSON in UTF-8"}
    try:
        return answers(request, source)
    except BadInput as error:
        return {"error": str(error)}
    except RecursionError:  # just shallow enough to be read
        return {"error": "the request is nested too deeply"}


def main() -> None:
    """Take over the standard streams: what anybody prints goes to stderr, not between the answers."""
    gc.set_threshold(200_000)  # as on the command line
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.argv[1] if len(sys.argv) > 1 else None, sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
