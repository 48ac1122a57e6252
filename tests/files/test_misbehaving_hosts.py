"""A host that misbehaves, whatever it answers, is refused in one line."""

from __future__ import annotations

import gzip
import json
import random
import re
import socket
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch

from checkpoints import write, write_config, write_sharded
from gguf_files import LLAMA, gguf, llama
from host import Handler, Host, publish
from hostile import MUTATIONS, mutations, refusal, rewritten, survives
from remote_hosts import (
    CONFIG,
    FIRST,
    SHAPES,
    Wire,
    contents,
    directly,
    folder,
    host,
    refused,
    same,
    wire,
)
from tallystick import count
from tallystick.files import http, remote
from tallystick.files.remote import Tally

__all__ = ["directly", "folder", "host", "wire"]  # fixtures


# -- hosts that misbehave -------------------------------------------------------------------------


def whole(ask: Handler) -> None:
    ask.answer(200, bytes(1000), Content_Length=50_000_000)


def endless(ask: Handler) -> None:
    """Bytes for as long as somebody takes them, without a word of how many."""
    ask.send_response(200)
    ask.end_headers()
    while True:
        ask.wfile.write(bytes(1 << 20))


def endless_piece(ask: Handler) -> None:
    ask.send_response(206)
    ask.send_header("Content-Range", f"bytes 0-{FIRST - 1}/1000000")
    ask.end_headers()
    while True:
        ask.wfile.write(b"\xff" * (1 << 20))


def short(ask: Handler) -> None:
    ask.answer(206, bytes(100), Content_Length=FIRST, Content_Range=f"bytes 0-{FIRST - 1}/1000000")


def quietly_short(ask: Handler) -> None:
    ask.answer(206, bytes(100), Content_Length=None, Content_Range=f"bytes 0-{FIRST - 1}/1000000")


def whole_and_short(ask: Handler) -> None:
    ask.answer(200, bytes(80_000), Content_Length=90_000)


def other_piece(ask: Handler) -> None:
    ask.answer(206, bytes(100), Content_Range="bytes 100-199/1000000")


def no_piece(ask: Handler) -> None:
    ask.answer(206, bytes(100))


def nonsense(ask: Handler) -> None:
    ask.wfile.write(b"\0\1\2 what is HTTP\r\n\r\n")


def packed(ask: Handler) -> None:
    ask.answer(206, gzip.compress(bytes(100)), Content_Range="bytes 0-99/100", Content_Encoding="gzip")


def round_and_round(ask: Handler) -> None:
    ask.answer(302, Location=f"{ask.host.address}/model.safetensors?{len(ask.host.requests)}")


def endless_redirect(ask: Handler) -> None:
    ask.send_response(302)
    ask.send_header("Location", f"{ask.host.address}/nothing")
    ask.end_headers()
    while True:
        ask.wfile.write(bytes(1 << 20))


def to_a_file(ask: Handler) -> None:
    ask.answer(302, Location="file:///etc/hosts")


def huge_header(ask: Handler) -> None:
    ask.piece((10**12).to_bytes(8, "little") + bytes(200_000))


def endless_continue(ask: Handler) -> None:
    while True:
        ask.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


MISBEHAVING = {
    whole: "the host does not support byte ranges, and the file has more than 16,000,000 bytes: download it",
    endless: "the host does not support byte ranges, and the file has more than 16,000,000 bytes",
    endless_piece: "the header claims 18,446,744,073,709,551,615 bytes",
    short: "the host stopped after 100 bytes, with 65,436 missing",
    quietly_short: "only 100 of the 65,536 bytes from byte 0 arrived",
    whole_and_short: "the host stopped after 80,000 bytes, with 10,000 missing",
    other_piece: "asked for 65,536 bytes from byte 0, and answers 'bytes 100-199/1000000'",
    no_piece: "asked for a byte range, and answers 206 without one",
    nonsense: "host's answer is not HTTP",
    packed: "the host compresses its answer ('gzip')",
    endless_continue: "the host sends far more than was requested",
    round_and_round: "redirects endlessly",
    endless_redirect: "was not found: the host answers 404",
    to_a_file: "or to an invalid address",
    huge_header: "the header claims 1,000,000,000,000 bytes, more than the format's 100,000,000",
}


@pytest.mark.parametrize(("answer", "said"), MISBEHAVING.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_a_host_that_misbehaves_is_refused(
    host: Host, answer: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host.answers["/model.safetensors"] = answer
    address = f"{host.address}/model.safetensors"
    line = refused(address, capsys)
    assert line.startswith(address)
    assert said in line


def test_a_small_file_is_read_from_a_host_that_sends_no_pieces(host: Host, folder: Path) -> None:
    for name, content in contents(folder).items():
        host.answers[f"/{name}"] = lambda ask, content=content: ask.answer(200, content)
    same(count(f"{host.address}/model.safetensors.index.json"), count(folder))


@pytest.mark.parametrize("what", ["size", "tag"])
def test_a_file_that_changes_in_between_is_refused(
    host: Host, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = write(tmp_path / "model.safetensors", {f"layers.{n}.weight": (8, 8) for n in range(2000)}).read_bytes()

    def changing(ask: Handler) -> None:
        later = len(host.requests) > 1
        ask.piece(content + bytes(later and what == "size"), tag='"new"' if later and what == "tag" else '"old"')

    host.answers["/model.safetensors"] = changing
    assert refused(f"{host.address}/model.safetensors", capsys).endswith("changed while it was read: try again")


def test_a_host_that_says_nothing_is_not_waited_for(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http, "PATIENCE", 0.05)
    host.answers["/config.json"] = lambda ask: ask.host.over.wait()
    assert "the host sent nothing for 0.05 seconds" in refused(f"{host.address}/config.json", capsys)


def test_a_host_that_sends_byte_after_byte_is_given_up(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http, "DEADLINE", 0)
    host.files["/config.json"] = json.dumps(CONFIG).encode()
    assert "still sending its answer" in refused(f"{host.address}/config.json", capsys)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            401,
            "may not be read: the host answers 401; for a hub repository use hf://org/name, which accepts a token",
        ),
        (403, "may not be read: the host answers 403"),
        (404, "was not found: the host answers 404"),
        (416, "the host answers 416"),
        (503, "the host answers 503"),
    ],
)
def test_what_a_host_answers_by_a_number_is_told(
    host: Host, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host.answers["/model.safetensors"] = lambda ask: ask.answer(status)
    assert said in refused(f"{host.address}/model.safetensors", capsys)


def test_a_config_beside_a_file_that_may_not_be_read_is_told_and_the_file_counted(host: Host, tmp_path: Path) -> None:
    host.files["/model.safetensors"] = write(tmp_path / "model.safetensors", SHAPES).read_bytes()
    host.answers["/config.json"] = lambda ask: ask.answer(403)
    ledger = count(f"{host.address}/model.safetensors")
    assert any("the checkpoint's config was not used" in note and "403" in note for note in ledger.notes)


def test_an_empty_file_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.files["/config.json"] = b""
    assert refused(f"{host.address}/config.json", capsys) == f"{host.address}/config.json is empty"


def test_a_host_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/config.json"
    assert refused(address, capsys) == f"{address} cannot be reached: Connection refused"

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    address = "https://no.such.host/config.json"
    assert refused(address, capsys) == f"{address} cannot be reached: Name or service not known"


def test_what_follows_a_question_mark_is_sent_for_that_file_and_shown_nowhere(host: Host, tmp_path: Path) -> None:
    host.files["/model.safetensors"] = write(tmp_path / "model.safetensors", SHAPES).read_bytes()
    ledger = count(f"{host.address}/model.safetensors?key=secret")
    assert [request.path for request in host.requests] == ["/model.safetensors?key=secret", "/config.json"]
    assert "secret" not in json.dumps(ledger.to_dict())


# -- whatever a host may answer -------------------------------------------------------------------


LINES = [
    *(f"Content-Length: {word}" for word in ("-1", "0", "x", "1e3", "99999999999999999999", "17000000", "9" * 5000)),
    *(f"Content-Range: {word}" for word in ("bytes 0-0/1", "bytes */0", "bytes 0-9/5", "bytes 5-1/9", "bytes 0-65535/9999999999999999999")),
    *(f"Location: {word}" for word in ("file:///etc/hosts", "http://[", "//", "/", "?", "http://host:99999/", "ftp://host/a", "\xff", "https://host/x")),
    *(f'Link: <{word}>; rel="next"' for word in ("http://host/more", "http://[", "file:///etc", "http://host:x/", "http://host" + "/a" * 5000)),
    *("Content-Encoding: gzip", "Content-Encoding: identity", "Transfer-Encoding: chunked", "Transfer-Encoding: x", 'ETag: "', "ETag: \xff"),
    *("X-Error-Code: \x1b[2J", f"X-Error-Code: {'N' * 5000}", "Set-Cookie: a", "Connection: close", "", " folded", "no colon", "a" * 70_000),
    *("\r\n".join(["X: y"] * 120), "Age: \0"),
]  # fmt: skip
STATUS = [*range(100, 104), *range(200, 207), *range(300, 309), *range(400, 417), *range(500, 505), 0, 99, 999, -1]


def other_heads(head: bytes, *, most: int) -> Iterator[bytes]:
    """The head of an answer with another status, and with lines put in, taken out or in place of
    others.
    """
    draw = random.Random(None if MUTATIONS else len(head))
    for _ in range(int(MUTATIONS or most)):
        first, *lines = head.decode().split("\r\n")
        if draw.random() < 0.4:
            first = (
                f"HTTP/{draw.choice(('1.1', '1.0', '0.9', '2', ''))} {draw.choice(STATUS)} {draw.choice(('', 'OK'))}"
            )
        for _ in range(draw.choice((0, 1, 1, 2))):
            place = draw.randrange(len(lines) + 1)
            lines[place : place + draw.randrange(2)] = [draw.choice(LINES)]
        yield "\r\n".join([first, *lines]).encode("latin-1")


def other_answers(answers: list[bytes], *, most: int) -> Iterator[bytes]:
    """Each answer with its head or what follows it changed, behind its place among them."""
    for place, answer in enumerate(answers):
        head, end, body = answer.partition(b"\r\n\r\n")
        heads = chain(other_heads(head, most=most), mutations(head, most=most))
        yield from (bytes([place]) + other + end + body for other in heads)
        yield from (bytes([place]) + head + end + other for other in mutations(body, most=most))
        if body[:1] in (b"[", b"{"):
            fixed = re.sub(rb"Content-Length: \d+\r\n", b"", head + end)  # to where the connection ends
            yield from (bytes([place]) + fixed + other for other in rewritten(json.loads(body), most=most))


def one_request(wire: Wire, web: http.Web, requests: list[bytes]) -> None:
    """Send again the one request whose answer is another, of all that a count sends, and make
    nothing of it.
    """
    wire.told = [b""] * wire.place
    request = requests[wire.place].decode()
    url = wire.host.address + request.split()[1]
    if span := re.search(r"Range: bytes=(\d+)-(\d+)", request):
        start, last = map(int, span.groups())
        web.piece(url, start, last + 1 - start, url)
    else:
        web.document(url, url)


@pytest.mark.parametrize(
    "source", ["model.safetensors", "model.safetensors.index.json", "model.gguf", "pytorch_model.bin", "hf://org/name"]
)
def test_a_changed_answer_is_counted_or_refused(
    wire: Wire, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "FIRST_PIECE", 512)  # so that small files are read in several pieces
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "model.safetensors", {f"h.{layer}.w": (2, 3) for layer in range(7)})
    write_sharded(folder, {"h.0.w": (2, 3)}, {"h.1.w": (2, 3)})
    (folder / "model.gguf").write_bytes(gguf(llama(), LLAMA))
    torch.save({"h.0.w": torch.zeros(2)}, folder / "pytorch_model.bin")
    write_config(folder, {"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 1})
    if source.startswith("hf:"):
        kept = {
            name: content for name, content in contents(folder).items() if name in ("model.safetensors", "config.json")
        }
        publish(wire.host, wire.host, "org/name", kept, page=1)
    else:
        wire.host.files = {f"/{name}": content for name, content in contents(folder).items()}
        source = f"{wire.host.address}/{source}"
    assert refusal(source) == ""
    inputs = other_answers(list(wire.told), most=4)
    alone = partial(one_request, wire, http.Web(Tally(), "hf_secret"), list(wire.asked))
    assert survives(tmp_path / "answer", inputs, source=source, put=wire.take, read=lambda _: alone())
