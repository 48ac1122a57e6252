"""What all pieces of one source may take together: time, requests, reads from sockets, and what is
listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoints import write
from host import COMMIT, Handler, Host, publish
from remote_hosts import (
    CONFIG,
    FIRST,
    PARAMETERS,
    Bucket,
    bucket,
    contents,
    directly,
    folder,
    host,
    hub,
    refused,
    storage,
)
from tallystick import BadInput, count
from tallystick.files import addresses, allowance, http
from tallystick.files.allowance import LONGEST, MOST_REQUESTS, SECONDS, SLOWEST, Allowance

__all__ = ["bucket", "directly", "folder", "host", "hub", "storage"]  # fixtures

TOO_SLOW = "seconds in total: download the files, and name the folder"


class Clock:
    """The time of an allowance, which a test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(allowance, "time", found)
    return found


def slowly(clock: Clock, content: bytes, seconds: float) -> Callable[[Handler], None]:
    """A file of which each piece takes so long, and which says nothing that would be too slow by
    itself.
    """

    def answer(ask: Handler) -> None:
        clock.now += seconds
        ask.piece(content)

    return answer


def many_shards(host: Host, clock: Clock, number: int, seconds: float) -> str:
    """The address of an index of so many shards, of which each takes so long."""
    names = {f"w{shard}": f"{shard}.safetensors" for shard in range(number)}
    host.files["/model.safetensors.index.json"] = json.dumps({"weight_map": names}).encode()
    for name, file in names.items():
        header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        host.answers[f"/{file}"] = slowly(clock, len(header).to_bytes(8, "little") + header + bytes(4), seconds)
    return f"{host.address}/model.safetensors.index.json"


def test_time_begins_with_the_first_request(clock: Clock) -> None:
    one = Allowance()
    clock.now += 1000
    assert one.request() == SECONDS
    clock.now += SECONDS - 1
    assert one.request() == one.left() == 1
    clock.now += 1
    with pytest.raises(BadInput, match=f"the requests took more than {SECONDS} {TOO_SLOW}"):
        one.request()


def test_a_line_that_is_slow_and_steady_is_given_more_time(clock: Clock) -> None:
    """30 MB at 1 Mbit/s, which is 125,000 bytes a second."""
    one = Allowance()
    one.request()
    for _ in range(240):
        clock.now += 1
        one.read(125_000)
    assert one.left() == SECONDS + 30_000_000 / SLOWEST - 240


def test_no_line_is_given_more_than_the_longest(clock: Clock) -> None:
    one = Allowance()
    one.request()
    one.read(10 * LONGEST * SLOWEST)
    clock.now += LONGEST
    with pytest.raises(BadInput, match=f"took more than {LONGEST} seconds"):
        one.left()


def test_shards_that_are_each_in_time_are_too_slow_together(
    host: Host, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    source = many_shards(host, clock, 20, 8)
    assert TOO_SLOW in refused(source, capsys)
    host.requests.clear()
    assert count(many_shards(host, clock, 13, 8)).total == 13


def test_pieces_of_one_file_that_are_each_in_time_are_too_slow_together(
    host: Host, clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = {f"model.layers.{layer}.weight": (8, 8) for layer in range(20_000)}
    content = write(tmp_path / "x.safetensors", shapes).read_bytes()
    host.answers["/x.safetensors"] = slowly(clock, content, SECONDS + 1)
    assert TOO_SLOW in refused(f"{host.address}/x.safetensors", capsys)
    assert host.ranges("x.safetensors") == [f"bytes=0-{FIRST - 1}"]


def test_a_slow_answer_is_given_up_while_it_comes(host: Host, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    def drip(ask: Handler) -> None:
        ask.send_response(200)
        ask.end_headers()
        while True:
            clock.now += 1
            ask.wfile.write(b" " * 1000)

    host.answers["/config.json"] = drip
    assert TOO_SLOW in refused(f"{host.address}/config.json", capsys)


def test_redirects_take_of_the_same_time(host: Host, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    def further(ask: Handler) -> None:
        clock.now += 50
        ask.answer(302, Location=f"/config.json?{len(host.requests)}")

    host.answers["/config.json"] = further
    assert TOO_SLOW in refused(f"{host.address}/config.json", capsys)
    assert len(host.requests) == 3


def test_pages_of_a_list_take_of_the_same_time(hub: Host, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    publish(hub, hub, "org/name", {f"{number}.txt": b"" for number in range(100)}, page=1)
    tree = next(path for path in hub.answers if "/tree/" in path)
    page = hub.answers[tree]
    hub.answers[tree] = lambda ask: (setattr(clock, "now", clock.now + 8), page(ask))
    assert TOO_SLOW in refused("hf://org/name", capsys)
    assert len(hub.requests) < 20


def test_more_requests_than_any_checkpoint_needs(
    host: Host, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(allowance, "MOST_REQUESTS", 10)
    source = many_shards(host, clock, 20, 0)
    assert "needs more than 10 requests" in refused(source, capsys)
    assert len(host.requests) == 10


@pytest.mark.parametrize(
    ("chunk", "said"),
    [(b"1\r\n \r\n", "pieces"), (b"1;" + b"x" * 20_000 + b"\r\n \r\n", "far more than was requested")],
    ids=["short", "long"],
)
def test_chunks_of_one_byte(host: Host, chunk: bytes, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def chunks(ask: Handler) -> None:
        ask.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            ask.wfile.write(chunk * 100)

    host.answers["/config.json"] = chunks
    assert said in refused(f"{host.address}/config.json", capsys)


def test_an_index_of_more_files_than_any_is_refused_before_they_are_asked_for(
    host: Host, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {f"w{shard}": f"{shard}.safetensors" for shard in range(MOST_REQUESTS + 1)}
    host.files["/model.safetensors.index.json"] = json.dumps({"weight_map": names}).encode()
    assert "needs 5,001 files" in refused(f"{host.address}/model.safetensors.index.json", capsys)
    assert len(host.requests) == 2


def test_a_list_that_is_larger_than_any(
    hub: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(addresses, "LARGEST_LIST", 5000)
    publish(hub, hub, "org/name", {f"{number}.txt": b"" for number in range(1000)}, page=50)
    assert "its file list has more than 5,000 bytes" in refused("hf://org/name", capsys)
    assert len(hub.requests) < 5


def test_a_page_that_is_larger_than_any(hub: Host, capsys: pytest.CaptureFixture[str]) -> None:
    publish(hub, hub, "org/name", {})
    hub.answers[f"/api/models/org/name/tree/{COMMIT}"] = lambda ask: ask.answer(200, b"[" + b"{}," * 2_000_000)
    assert f"more than {http.LARGEST_DOCUMENT:,} bytes" in refused("hf://org/name", capsys)


def test_a_bucket_takes_of_an_allowance_too(
    bucket: Bucket, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, info = Bucket.cat_file, Bucket.info
    given = []

    def slow(self: Bucket, *rest: object, timeout: float, **more: object) -> object:
        given.append(timeout)
        clock.now += 70
        return read(self, *rest, **more)

    monkeypatch.setattr(Bucket, "cat_file", slow)
    monkeypatch.setattr(Bucket, "info", lambda self, path, **_: info(self, path))
    names = {f"w{shard}": f"{shard}.safetensors" for shard in range(3)}
    bucket.pipe_file("/bucket/model.safetensors.index.json", json.dumps({"weight_map": names}).encode())
    for name, file in names.items():
        header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        bucket.pipe_file(f"/bucket/{file}", len(header).to_bytes(8, "little") + header + bytes(4))
    assert TOO_SLOW in refused("s3://bucket/model.safetensors.index.json", capsys)
    assert given[:2] == pytest.approx([http.DEADLINE, SECONDS - 70], abs=1)  # some bytes came
    bucket.pipe_file("/bucket/config.json", json.dumps(CONFIG).encode())
    assert count("s3://bucket/config.json").total == PARAMETERS


def test_two_sources_have_two_allowances(host: Host, clock: Clock, folder: Path) -> None:
    for name, content in contents(folder).items():
        host.answers[f"/{name}"] = slowly(clock, content, 25)
    index = f"{host.address}/model.safetensors.index.json"
    for _ in range(2):
        assert count(index).total == PARAMETERS
