"""A host on this machine that serves files in pieces, counts what it is asked for and what it
sends, and misbehaves when told to.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

Answer = Callable[["Handler"], None]


class Request(NamedTuple):
    path: str
    range: str | None
    authorization: str | None


class Host:
    """What is served: files by their paths, and for some paths an answer of their own."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, Answer] = {}
        self.requests: list[Request] = []
        self.sent = 0  # bytes of files
        self.over = threading.Event()  # for answers that wait until the test is done

    def ranges(self, ending: str) -> list[str | None]:
        return [request.range for request in self.requests if request.path.endswith(ending)]


class Handler(BaseHTTPRequestHandler):
    host: Host

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.host.requests.append(Request(self.path, self.headers["Range"], self.headers["Authorization"]))
        try:
            if path in self.host.answers:
                self.host.answers[path](self)
            elif path in self.host.files:
                self.piece(self.host.files[path])
            else:
                self.answer(404)
        except OSError:  # the client has had enough
            pass

    def answer(self, status: int, content: bytes = b"", **headers: object) -> None:
        """A whole answer; in the names of headers an underscore stands for a hyphen."""
        self.send_response(status)
        for name, value in {"Content_Length": len(content), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.host.sent += len(content)  # before who reads it can ask how much it was
        self.wfile.write(content)

    def piece(self, content: bytes, tag: str | None = None) -> None:
        """What was asked for of a file, as a host should give it."""
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        if not content:
            self.answer(416, Content_Range="bytes */0")
            return
        part = content[first : last + 1]
        said = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        self.answer(206, part, Content_Range=said, ETag=tag or f'"{sha256(content).hexdigest()[:16]}"')


@contextmanager
def serving() -> Iterator[Host]:
    """A host for as long as a test runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), None)
    host = Host(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = type("Bound", (Handler,), {"host": host})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield host
    finally:
        host.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def publish(
    hub: Host, storage: Host, repository: str, files: dict[str, bytes], *, revision: str = "main", page: int = 1000
) -> None:
    """A repository as the hub has it: a commit, pages of a list, and files to which it points
    elsewhere.
    """
    api = f"/api/models/{repository}"
    hub.answers[f"{api}/revision/{revision}"] = lambda ask: ask.answer(200, json.dumps({"sha": COMMIT}).encode())
    folders = {name.rpartition("/")[0] for name in files} | {""}
    for folder in folders:
        beside = [name for name in files if name.rpartition("/")[0] == folder]
        listed = [{"type": "file", "path": name, "size": len(files[name])} for name in beside]
        listed += [{"type": "directory", "path": name} for name in folders if name and "/" not in name and not folder]
        address = f"{api}/tree/{COMMIT}" + (f"/{folder}" if folder else "")
        hub.answers[address] = _pages(hub.address + address, listed, page)
    for name, content in files.items():
        storage.files[f"/blobs/{repository}/{name}"] = content
        target = f"{storage.address}/blobs/{repository}/{quote(name)}?signed=yes"
        hub.answers[f"/{repository}/resolve/{COMMIT}/{name}"] = lambda ask, to=target: ask.answer(302, Location=to)


def _pages(address: str, listed: list[dict[str, object]], page: int) -> Answer:
    def answer(ask: Handler) -> None:
        start = int(urlsplit(ask.path).query.removeprefix("cursor=") or 0)
        more = f'<{address}?cursor={start + page}>; rel="next"' if start + page < len(listed) else None
        ask.answer(200, json.dumps(listed[start : start + page]).encode(), Link=more)

    return answer
