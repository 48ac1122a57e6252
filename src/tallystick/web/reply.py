"""Answer one request of the page, from JSON to JSON: in the worker process, or in the browser."""

from __future__ import annotations

import json
from typing import Any

from tallystick.errors import BadInput
from tallystick.unforeseen import line_of
from tallystick.web.answers import answers
from tallystick.web.request import forget

MOST_REPLY = 50_000_000  # bytes; the answer to the largest header has a third of this


def reply_to(body: str | bytes, source: str | None = None) -> bytes:
    """Return the JSON reply to a request; it contains ``error`` if there is no answer."""
    try:
        return _encoded(answers(_request(body), source))
    except BaseException as error:  # the next request must still be answered
        line = line_of(error)
        if isinstance(error, MemoryError):
            forget()
        return _encoded({"error": line})


def _request(body: str | bytes) -> Any:
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
