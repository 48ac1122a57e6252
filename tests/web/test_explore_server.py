"""The explorer's server at its socket: what is no request is refused, floods close themselves, the
worker lives.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from urllib.request import Request, urlopen

import pytest

from rotating import one_by_commit
from tallystick.isolation.pipes import LENGTH_BYTES
from tallystick.web.connections import MOST

SERVED = """\
from tallystick.web import app, connections, security
connections.HEAD_SECONDS, security.BODY_SECONDS, app.GRACE = {head}, {body}, {grace}
app.app.__kwdefaults__["seconds"] = 600
from tallystick.cli.main import main
main(["explore", "--no-browser", *{words}])
"""


class Server:
    """A server in a process of its own; at its end it has said nothing."""

    def __init__(self, *words, head=60, body=60, grace=60, cwd=None):
        code = SERVED.format(head=head, body=body, grace=grace, words=words)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
        )
        self.home = self.process.stdout.readline().strip()
        assert self.home, self.process.communicate()[1]
        self.port, self.token = int(self.home.split(":")[2].split("/")[0]), self.home.split("/")[3]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        assert self.process.communicate()[1] == ""

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def send(self, start, *headers, body=b""):
        """A connection on which a request was sent."""
        connection = self.connect()
        lines = [start.format(token=self.token), f"Host: 127.0.0.1:{self.port}", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode("latin-1") + body)
        return connection

    def status(self, start, *headers, body=b""):
        """The status of the answer."""
        with self.send(start, *headers, body=body) as connection:
            return _status(connection)

    def count(self):
        """The parameters of GPT-2: what a user of the page gets."""
        body = json.dumps({"model": {"name": "gpt2"}, "wanted": ["count"]}).encode()
        with urlopen(Request(self.home + "answers", data=body), timeout=60) as reply:
            return json.load(reply)["count"]["answer"]["totals"]["unique"]


def _status(connection):
    return int(connection.makefile("rb").readline().split()[1])


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        yield server


@pytest.mark.parametrize(
    "start",
    ["OPTIONS * HTTP/1.1", "CONNECT example.org:443 HTTP/1.1", "GET foo HTTP/1.1", "GET http://127.0.0.1/ HTTP/1.1",
     "GET http://127.0.0.1/{token}/ HTTP/1.1", "GET  HTTP/1.1", "GET ? HTTP/1.1", "GET # HTTP/1.1", "GET *", "GET /",
     "GET \0 HTTP/1.1", "GET /\0 HTTP/1.1", "GET /\xe9 HTTP/1.1", "PRI * HTTP/2.0", "\x16\x03\x01\x02", "GET / HTTP/9.9"],
)  # fmt: skip
def test_what_names_no_path_is_refused(server, start):
    assert server.status(start) in (400, 403)
    assert server.count() == 124_439_808


@pytest.mark.parametrize("path", ["%00", "static/%00", "static/" + "a" * 5000, "static/%ff%fe", "static/..%2f%00"])
def test_a_path_that_no_file_has_is_not_found(server, path):
    assert server.status(f"GET /{{token}}/{path} HTTP/1.1") == 404


def test_rubbish_after_a_request_is_refused(server):
    assert server.status("GET /{token}/start.json HTTP/1.1", body=b"\0 rubbish\r\n\r\n") == 200
    length = "Content-Length: 2"
    assert server.status("POST /{token}/answers HTTP/1.1", length, body=b"{}\0 rubbish\r\n\r\n") in (200, 400)
    assert server.status("POST /{token}/answers HTTP/1.1", "Transfer-Encoding: chunked", body=b"zz\r\n") == 400
    assert server.count() == 124_439_808


def test_a_head_that_is_too_large_is_refused(server):
    with server.connect() as connection:
        connection.sendall(b"GET /" + b"x" * 300_000)
        assert _status(connection) == 400


def test_a_client_that_leaves_in_its_request_leaves_no_trace(server):
    for body in (b"", b"{"):
        server.send("POST /{token}/answers HTTP/1.1", "Content-Length: 100", body=body).close()
        with server.send("POST /{token}/answers HTTP/1.1", "Content-Length: 100", body=body) as connection:
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1000):
                pass
    assert server.count() == 124_439_808


def test_a_flood_of_unfinished_requests_closes_its_own(server):
    with ExitStack() as held:
        flood = [held.enter_context(server.connect()) for _ in range(3 * MOST)]
        for connection in flood:
            with suppress(ConnectionError):  # closed already
                connection.sendall(b"GET / HTTP/1.1\r\nX: unfinished")
        for connection in flood[: 2 * MOST - 1]:  # the oldest ones; one place is for who asks
            _ends(connection)
        assert server.count() == 124_439_808
        for connection in flood[-MOST // 2 :]:  # the newest are still heard
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)


def _ends(connection):
    with suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def test_an_unfinished_request_is_ended_in_time():
    with Server(head=0.3, body=0.3) as server:
        with server.connect() as connection:  # nothing was asked, so nothing is answered
            _ends(connection)
        with server.connect() as connection:
            connection.sendall(b"GET /")
            assert _status(connection) == 408
        for begun in (b"{", b""):
            with server.send("POST /{token}/answers HTTP/1.1", "Content-Length: 100", body=begun) as connection:
                assert _status(connection) == 408
        with server.send(
            "GET /{token}/start.json HTTP/1.1"
        ) as connection:  # and after a whole one, on the same connection
            assert _status(connection) == 200
            connection.sendall(b"GET")
            answer = connection.makefile("rb").read()
            assert answer.endswith(b"content-length: 0\r\n\r\n")
        assert server.count() == 124_439_808


BLOCKS = """\
import os, signal
from torch import nn
def build():
    if os.path.exists("counted"):  # by the command, before the page is served
        with open("begun", "w"):  # until the test reads it
            pass
        signal.pause()
    open("counted", "w").close()
    return nn.Linear(1, 1)
"""


@pytest.mark.usefixtures("preloaded")
def test_what_nobody_waits_for_any_more_is_ended(tmp_path):
    """The next request is answered long before the one before would have been stopped."""
    (tmp_path / "mine.py").write_text(BLOCKS)
    os.mkfifo(tmp_path / "begun")
    with Server("mine:build", grace=0, cwd=tmp_path) as server:
        body = json.dumps({"model": {"name": "mine:build"}, "wanted": ["count"]}).encode()
        with server.send("POST /{token}/answers HTTP/1.1", f"Content-Length: {len(body)}", body=body):
            (tmp_path / "begun").read_bytes()
        assert server.count() == 124_439_808


# -- the worker -----------------------------------------------------------------------------------

GPT2 = {"model": {"name": "gpt2"}, "wanted": ["count"]}


def replies(*requests, memory=2_000_000_000, before="", said=b""):
    """What one worker replies to requests, each JSON or its bytes; None where it ended."""
    code = f"from tallystick.web import worker\nworker.MEMORY = {memory}\n{before}\nworker.main()"
    bodies = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in requests]
    sent = b"".join(len(body).to_bytes(LENGTH_BYTES, "big") + body for body in bodies)
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=False)
    assert done.stderr == said
    found, left = [], done.stdout
    while left:
        end = LENGTH_BYTES + int.from_bytes(left[:LENGTH_BYTES], "big")
        found.append(json.loads(left[LENGTH_BYTES:end], parse_constant=pytest.fail))
        left = left[end:]
    assert len(found) == len(requests)
    return found


def unique(reply):
    return reply["count"]["answer"]["totals"]["unique"]


@pytest.mark.skipif(sys.platform != "linux", reason="the system limits no memory")
def test_too_much_memory_is_said_and_the_next_request_is_answered():
    wide = b'{"wanted": [' + b"[]," * 5_000_000 + b"[]]}"  # some 500 MB of lists
    refused, answered = replies(wide, GPT2, memory=300_000_000)
    assert refused == {"error": "this needs too much memory"}
    assert unique(answered) == 124_439_808


NO_SIZES = (["9" * 4000, "9" * 5000, "-" + "9" * 4000], ["1e400", "NaN", "-Infinity"], ["true"])


@pytest.mark.parametrize("number", [number for kind in NO_SIZES for number in one_by_commit(kind)])
def test_no_number_ends_the_worker(number):
    """In whatever field it stands. What the worker writes is JSON that a browser reads: NaN is
    none.
    """
    wanted = '["count", "memory", "compute", "reconcile", "compare", "formula"]'
    plain = {"model": '{"name": "gpt2"}', "other": '{"name": "gpt2"}', "wanted": wanted, "claim": '"1B"'}
    config = json.dumps({"config": f'{{"model_type": "llama", "rope_theta": {number}, "hidden_size": {number}}}'})
    header = f'{{"a": {{"dtype": "F32", "shape": [{number}], "data_offsets": [0, {number}]}}}}'
    parts = [
        *({"run": f'{{"mode": "training", "{key}": {number}}}'} for key in ("batch", "sequence", "lora", "dp", "zero", "tp", "pp", "ep", "device")),
        *({"set": f'{{"{key}": {number}}}', "other_set": f'{{"{key}": {number}}}'} for key in ("n_layer", "vocab_size", "x")),
        *({key: number} for key in ("claim", "width", "by", "wanted", "model", "set", "run")),
        {"model": config}, {"model": json.dumps({"header": header, "bytes": 4})}, {"model": f'{{"header": "{{}}", "bytes": {number}}}'},
    ]  # fmt: skip
    bodies = ["{" + ", ".join(f'"{key}": {value}' for key, value in {**plain, **part}.items()) + "}" for part in parts]
    *found, last = replies(*(body.encode() for body in bodies), GPT2)
    assert unique(last) == 124_439_808
    assert "bug in tallystick" not in json.dumps(found)
    for reply in found:
        for answer in [reply, *(one for one in reply.values() if isinstance(one, dict))]:
            assert len(answer.get("error", "")) < 300


@pytest.mark.parametrize(
    "body",
    [b"", b'{"a":' * 100_000, b'{"model":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
     json.dumps({**GPT2, "set": {f"key{place}": 1 for place in range(100_000)}}).encode(),
     json.dumps({**GPT2, "wanted": ["count"] * 100_000}).encode()],
    ids=["empty", "deep", "deep in a part", "wide", "long"],
)  # fmt: skip
def test_no_shape_of_a_request_ends_the_worker(body):
    _, last = replies(body, GPT2)
    assert unique(last) == 124_439_808


def test_an_error_that_nobody_foresaw_is_a_line():
    broken = (
        "import tallystick.web.answers as page\n"
        "errors = iter([KeyError('x'), SystemExit(0), KeyboardInterrupt(), GeneratorExit()])\n"
        "def broken(asked): raise next(errors)\n"
        "page.ANSWERS['formula'] = broken"
    )
    asked = {**GPT2, "wanted": ["formula", "count"]}
    answers = replies(*[asked, GPT2] * 4, before=broken)
    assert len({answer["formula"]["error"] for answer in answers[::2]}) == 4
    for answer in answers:
        assert "\n" not in answer.get("formula", {}).get("error", "")
        assert unique(answer) == 124_439_808


def test_nothing_that_is_asked_on_the_terminal_reads_a_request():
    asking = "import tallystick.web.answers as page\ndef ask(asked): return {'said': input('run custom code? [y/N]')}\npage.ANSWERS['csv'] = ask"
    first, last = replies({**GPT2, "wanted": ["csv"]}, GPT2, before=asking, said=b"run custom code? [y/N]")
    assert "EOFError" in first["csv"]["error"]
    assert unique(last) == 124_439_808
