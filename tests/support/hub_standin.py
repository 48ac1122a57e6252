"""A stand-in for the hub, as a browser meets it: lists of files, pieces of files, a redirect to
another origin for large ones, cross-origin headers, and access by token.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_tests"
SMALL = 10_000  # bytes: larger files are elsewhere


class Asked(NamedTuple):
    method: str
    path: str
    range: str | None
    authorization: str | None


class StandIn:
    """What is served: the files of each repository, and which of these are private."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.revisions: dict[str, str] = {}  # "org/name@revision" -> the repository that it is
        self.private: set[str] = set()
        self.whole = False  # whether ranges are ignored
        self.hub: list[Asked] = []
        self.storage: list[Asked] = []
        self.sent = 0  # bytes of files
        self.addresses = ("", "")  # of the hub and of the storage


def commit_of(repository: str) -> str:
    """The commit that its files are of."""
    return sha1(repository.encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, content: bytes = b"", **headers: Any) -> None:
        self.send_response(status)
        if origin := self.headers["Origin"]:
            self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Access-Control-Expose-Headers", "Content-Range, Accept-Ranges, ETag, X-Error-Message")
        for name, value in {"Content-Length": len(content), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(content)

    def do_OPTIONS(self) -> None:
        self.noted.append(self.asked)
        self.reply(204, Access_Control_Allow_Headers="authorization, range", Access_Control_Allow_Methods="GET")

    @property
    def asked(self) -> Asked:
        return Asked(self.command, self.path, self.headers["Range"], self.headers["Authorization"])

    def piece(self, content: bytes) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        if wanted is None or self.stand_in.whole:
            self.reply(200, content)
            return
        start, end = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        self.stand_in.sent += end + 1 - start
        self.reply(206, content[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(content)}")


class _Hub(_Handler):
    @property
    def noted(self) -> list[Asked]:
        return self.stand_in.hub

    def do_GET(self) -> None:
        self.noted.append(self.asked)
        path = unquote(urlsplit(self.path).path)
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([0-9a-f]{40})/(.+)", path)
        name = (api or file or {1: ""})[1]
        if api and api[2] != "main":
            name = self.stand_in.revisions.get(f"{name}@{api[2]}", "")
        elif file:  # of one commit
            name = next((one for one in self.stand_in.repositories if commit_of(one) == file[2]), "")
        files = self.stand_in.repositories.get(name)
        if name in self.stand_in.private and self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.reply(401, b'{"error":"Invalid username or password."}')
        elif files is None:
            self.reply(404, b'{"error":"Repository not found"}')
        elif api:
            siblings = [{"rfilename": one, "size": len(content)} for one, content in files.items()]
            self.reply(
                200,
                json.dumps({"sha": commit_of(name), "siblings": siblings}).encode(),
                Content_Type="application/json",
            )
        elif file and len(files[file[3]]) > SMALL:
            self.reply(302, Location=f"{self.stand_in.addresses[1]}/{name}/{file[3]}")
        elif file:
            self.piece(files[file[3]])


class _Storage(_Handler):
    @property
    def noted(self) -> list[Asked]:
        return self.stand_in.storage

    def do_GET(self) -> None:
        self.noted.append(self.asked)
        _, organisation, name, file = unquote(self.path).split("/")
        self.piece(self.stand_in.repositories[f"{organisation}/{name}"][file])


@contextmanager
def hub_standin() -> Iterator[StandIn]:
    """A hub and its storage, on two ports of this machine."""
    stand_in = StandIn()
    kinds = [type(kind.__name__, (kind,), {"stand_in": stand_in}) for kind in (_Hub, _Storage)]
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), kinds[0]) as hub,
        ThreadingHTTPServer(("127.0.0.1", 0), kinds[1]) as storage,
    ):
        for server in (hub, storage):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        stand_in.addresses = (f"http://127.0.0.1:{hub.server_port}", f"http://127.0.0.1:{storage.server_port}")
        yield stand_in
        hub.shutdown()
        storage.shutdown()
