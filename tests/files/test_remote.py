"""Sources elsewhere, from a host on this machine: headers alone are fetched, and a host that
misbehaves is refused in one line.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import socket
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from fsspec.registry import _registry, known_implementations

import tallystick
from checkpoints import write, write_config, write_sharded
from gguf_files import LLAMA, gguf, llama
from host import Handler, Host, publish
from hostile import MUTATIONS, mutations, refusal, rewritten, survives
from remote_hosts import (
    CONFIG,
    FIRST,
    PARAMETERS,
    SHAPES,
    Bucket,
    Wire,
    bucket,
    contents,
    directly,
    folder,
    host,
    hub,
    refused,
    storage,
    wire,
)
from tallystick import BadInput, count
from tallystick.cli.main import main
from tallystick.files import http, remote
from tallystick.files.addresses import elsewhere
from tallystick.files.remote import Tally
from tallystick.sources.locate import locate_weights

__all__ = ["bucket", "directly", "folder", "host", "hub", "storage", "wire"]  # fixtures


def same(one: tallystick.Ledger, other: tallystick.Ledger) -> None:
    assert one.rolled == other.rolled
    assert one.totals == other.totals
    assert one.mismatches == other.mismatches


# -- what is read, and how much of it -------------------------------------------------------------


def test_a_file_at_an_address_is_counted_by_its_first_piece_and_the_config_beside_it(
    host: Host, tmp_path: Path
) -> None:
    path = write(tmp_path / "model.safetensors", SHAPES)
    write_config(tmp_path, CONFIG)
    host.files = {f"/some/{name}": content for name, content in contents(tmp_path).items()}
    ledger = count(f"{host.address}/some/model.safetensors")
    same(ledger, count(tmp_path))
    assert ledger.total == PARAMETERS
    assert [request.path for request in host.requests] == ["/some/model.safetensors", "/some/config.json"]
    assert host.sent == FIRST + len(json.dumps(CONFIG))
    size = path.stat().st_size + len(json.dumps(CONFIG))
    assert ledger.to_dict()["fetched"] == {"bytes": host.sent, "of_bytes": size, "requests": 2}
    assert ledger.notes[-1] == f"fetched {host.sent:,} of {size:,} bytes in 2 requests"


def test_of_a_long_header_the_rest_is_fetched_and_hardly_more(host: Host, tmp_path: Path) -> None:
    shapes = {
        f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight": (8, 8)
        for layer in range(20)
        for expert in range(256)
    }
    path = write(tmp_path / "model.safetensors", shapes)
    header = int.from_bytes(path.read_bytes()[:8], "little")
    host.files["/model.safetensors"] = path.read_bytes()
    same(count(f"{host.address}/model.safetensors"), count(path))
    assert FIRST * 5 < header < host.sent < header + 8 + 2 * FIRST
    assert len(host.ranges("model.safetensors")) <= 3


def test_shards_named_by_an_index_are_each_asked_for_their_header_alone(host: Host, folder: Path) -> None:
    host.files = {f"/{name}": content for name, content in contents(folder).items()}
    ledger = count(f"{host.address}/model.safetensors.index.json")
    same(ledger, count(folder))
    assert ledger.total == PARAMETERS
    assert host.ranges("-of-00002.safetensors") == [f"bytes=0-{FIRST - 1}"] * 2
    assert ledger.fetched.requests == len(host.requests) == 4


def test_each_file_of_a_host_is_asked_for_once_however_many_there_are(host: Host, tmp_path: Path) -> None:
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(70)]
    shards = {name: f"model-{place:05}-of-00070.safetensors" for place, name in enumerate(names, 1)}
    for name, shard in shards.items():
        write(tmp_path / shard, {name: (8, 8)})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    host.files = {f"/{name}": content for name, content in contents(tmp_path).items()}
    ledger = count(f"{host.address}/model.safetensors.index.json")
    assert ledger.total == 70 * 64
    asked = Counter(request.path for request in host.requests)
    assert asked == {f"/{name}": 1 for name in (*shards.values(), "model.safetensors.index.json", "config.json")}


def test_a_shard_that_is_not_beside_its_index_is_named(
    host: Host, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.files = {
        f"/{name}": content for name, content in contents(folder).items() if not name.startswith("model-00002")
    }
    said = refused(f"{host.address}/model.safetensors.index.json", capsys)
    assert said.endswith("names 2 shards, of which 1 are missing from its folder: 'model-00002-of-00002.safetensors'")


@pytest.mark.parametrize("there", [0, 1])
def test_a_folder_whose_shards_are_not_all_there_is_counted_from_its_config(
    hub: Host, storage: Host, folder: Path, there: int
) -> None:
    shards = sorted(folder.glob("*.safetensors"))
    for shard in shards[there:]:
        shard.unlink()
    publish(hub, storage, "org/name", contents(folder))
    ledger, local = count("hf://org/name"), count(folder)
    same(ledger, local)
    assert ledger.total == count(CONFIG).total
    assert ledger.notes[0] == local.notes[0]
    assert ledger.notes[0].startswith(f"{there} of 2 weight files are present, not ")


def test_a_config_alone_is_counted(host: Host) -> None:
    host.files["/config.json"] = json.dumps(CONFIG).encode()
    assert count(f"{host.address}/config.json", n_layer=1).total == PARAMETERS - 196_608 - 1_664


def test_a_gguf_is_fetched_in_growing_pieces_up_to_its_last_tensor(host: Host, tmp_path: Path) -> None:
    words = {
        **LLAMA,
        "tokenizer.ggml.tokens": [f"a word of the tokenizer, number {number}" for number in range(20_000)],
    }
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(llama(), words) + bytes(1 << 22))
    host.files["/model.gguf"] = path.read_bytes()
    same(count(f"{host.address}/model.gguf"), count(path))
    spans = [tuple(map(int, span.removeprefix("bytes=").split("-"))) for span in host.ranges(".gguf")]
    sizes = [last - first + 1 for first, last in spans]
    assert sizes == [FIRST << step for step in range(len(sizes))]
    assert all(0 < other[0] - one[1] < 100 for one, other in pairwise(spans))  # a word is stepped over, not read
    assert host.sent < 2 * (path.stat().st_size - (1 << 22))


def test_a_torch_file_is_counted_by_its_directory_and_its_pickle(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save({f"transformer.h.{n}.mlp.c_fc.weight": torch.zeros(512, 512) for n in range(20)}, path)
    host.files["/pytorch_model.bin"] = path.read_bytes()
    same(count(f"{host.address}/pytorch_model.bin"), count(path))
    assert host.sent < 5 * FIRST < path.stat().st_size / 50


def test_formats_that_cannot_be_read_in_pieces_are_refused_before_they_are_fetched(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.pt"
    torch.save({"weight": torch.zeros(1024, 1024)}, path, _use_new_zipfile_serialization=False)
    host.files = {"/old.pt": path.read_bytes(), "/arrays.npz": b"PK\x03\x04" + bytes(100)}
    assert "torch before 1.6, which is read only from local files" in refused(f"{host.address}/old.pt", capsys)
    assert "read only from local files" in refused(f"{host.address}/arrays.npz", capsys)
    assert host.sent < 2 * FIRST


def test_ties_that_hang_on_values_are_unknown_and_say_that_none_are_fetched(host: Host, tmp_path: Path) -> None:
    path = write(tmp_path / "model.safetensors", {**SHAPES, "lm_head.weight": (1000, 128)})
    host.files = {"/model.safetensors": path.read_bytes(), "/config.json": json.dumps(CONFIG).encode()}
    found = tallystick.ties(f"{host.address}/model.safetensors")
    assert [group.relation for group in found.groups] == ["unknown"]
    assert "the values are remote" in found.groups[0].why
    assert host.sent < 2 * FIRST


def test_commands_take_addresses(host: Host, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host.files = {f"/{name}": content for name, content in contents(folder).items()}
    index = f"{host.address}/model.safetensors.index.json"
    for command in (
        ["memory", index],
        ["fit", index, "--device", "8GB"],
        ["compute", index],
        ["ties", index],
        ["compare", "gpt2", index],
    ):
        assert main([*command, "--format", "json"]) == 0, command
        answer = json.loads(capsys.readouterr().out)
        assert index in (answer.get("source"), answer.get("source_b")), command


def test_a_mended_copy_is_not_written_of_what_is_elsewhere(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.files["/model.safetensors"] = write(tmp_path / "model.safetensors", SHAPES).read_bytes()
    assert main(["ties", f"{host.address}/model.safetensors", "--fix", str(tmp_path / "out")]) == 2
    assert "is not on this machine" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_needs_the_values_says_that_an_address_has_none() -> None:
    with pytest.raises(BadInput, match="only headers of hf://org/name are read, but this needs values"):
        locate_weights("hf://org/name")


# -- the hub --------------------------------------------------------------------------------------


def test_a_repository_is_listed_and_counted_as_its_folder(hub: Host, storage: Host, folder: Path) -> None:
    publish(hub, storage, "org/name", contents(folder), page=2)
    ledger = count("hf://org/name")
    same(ledger, count(folder))
    assert ledger.source == "hf://org/name"
    assert ledger.fetched.bytes == storage.sent
    assert ledger.fetched.requests == len(hub.requests) + len(storage.requests) == 1 + 2 + 2 * 4


def test_a_revision_a_folder_and_a_file_of_a_repository_can_be_named(hub: Host, storage: Host, folder: Path) -> None:
    files = {f"deep/{name}": content for name, content in contents(folder).items()}
    publish(hub, storage, "org/name", {**files, "config.json": b'{"model_type": "gpt2"}'}, revision="refs%2Fpr%2F3")
    hub.answers = {path.replace("%2F", "/"): answer for path, answer in hub.answers.items()}
    assert count("hf://org/name@refs/pr/3/deep").total == PARAMETERS
    assert count("hf://org/name@refs%2Fpr%2F3/deep/config.json").total == PARAMETERS
    assert count("hf://org/name@refs/pr/3").total == 124_439_808
    assert "refs%2Fpr%2F3" in hub.requests[0].path


def test_a_token_goes_to_the_hub_and_to_no_host_that_it_points_to(
    hub: Host, storage: Host, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(hub, storage, "org/name", contents(folder))
    assert main(["count", "hf://org/name"]) == 0
    said = capsys.readouterr()
    assert {request.authorization for request in hub.requests} == {"Bearer hf_secret"}
    assert {request.authorization for request in storage.requests} == {None}
    assert "hf_secret" not in said.out + said.err


def test_a_token_stays_with_a_hub_that_points_to_itself(hub: Host, folder: Path) -> None:
    publish(hub, hub, "org/name", contents(folder))
    count("hf://org/name")
    assert {request.authorization for request in hub.requests} == {"Bearer hf_secret"}


def test_a_list_that_goes_on_at_another_host_is_not_followed(hub: Host, storage: Host, folder: Path) -> None:
    publish(hub, storage, "org/name", contents(folder))
    tree = next(path for path in hub.answers if "/tree/" in path)
    files = [{"type": "file", "path": "config.json"}]
    more = f'<{storage.address}/more>; rel="next"'
    hub.answers[tree] = lambda ask: ask.answer(200, json.dumps(files).encode(), Link=more)
    assert count("hf://org/name").kind == "config"
    assert [request.path for request in storage.requests] == ["/blobs/org/name/config.json?signed=yes"]


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "RevisionNotFound", "hf://org/name@v9 was not found: the host answers 404 ('RevisionNotFound')"),
        (401, "RepoNotFound", "set HF_TOKEN or run `hf auth login`"),
        (403, "GatedRepo", "hf://org/name@v9 may not be read: the host answers 403 ('GatedRepo')"),
    ],
)
def test_what_the_hub_refuses_is_told(
    hub: Host, status: int, code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.answers["/api/models/org/name/revision/v9"] = lambda ask: ask.answer(status, X_Error_Code=code)
    line = refused("hf://org/name@v9", capsys)
    assert said in line
    assert "hf_secret" not in line


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (b"<html>", "the hub's answer is not JSON"),
        (b"[]", "the hub names no commit"),
        (b"[" * 100_000, "the hub's answer is not JSON"),
        (b'{"sha": "../x"}', "the hub names no commit"),
    ],
)
def test_a_hub_that_answers_with_something_else_is_refused(
    hub: Host, told: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.answers["/api/models/org/name/revision/main"] = lambda ask: ask.answer(200, told)
    assert refused("hf://org/name", capsys) == f"hf://org/name: {said}"


def test_a_repository_without_a_model_says_so(hub: Host, storage: Host, capsys: pytest.CaptureFixture[str]) -> None:
    publish(hub, storage, "org/name", {"README.md": b"nothing"})
    assert refused("hf://org/name", capsys) == "hf://org/name holds neither a config.json nor weights"


def test_nothing_is_asked_where_the_hub_is_switched_off(
    hub: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refused("hf://org/name", capsys) == "hf://org/name is not fetched: HF_HUB_OFFLINE is set"
    assert hub.requests == []


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


def test_a_name_that_is_nothing_here_is_a_repository_of_the_hub(
    hub: Host, storage: Host, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(hub, storage, "org/name", contents(folder))
    monkeypatch.chdir(tmp_path)
    ledger = count("org/name")
    same(ledger, count("hf://org/name"))
    assert ledger.source == "hf://org/name"  # so that each answer says where it was read
    assert any("fetched" in note for note in ledger.notes)
    (tmp_path / "org").mkdir()  # a folder of that name: the path was meant
    with pytest.raises(BadInput, match=r"^org/name: No such file or directory"):
        count("org/name")


def test_a_name_on_a_machine_without_the_hub_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refused("org/name", capsys) == (
        "there is no file or folder 'org/name'; on the hub: hf://org/name is not fetched: HF_HUB_OFFLINE is set"
    )


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


# -- object stores --------------------------------------------------------------------------------


def test_a_folder_of_a_bucket_is_counted_as_a_folder(bucket: Bucket, folder: Path) -> None:
    for name, content in contents(folder).items():
        bucket.pipe_file(f"/bucket/models/{name}", content)
    same(count("s3://bucket/models"), count(folder))
    assert count("s3://bucket/models/config.json").total == PARAMETERS


def test_what_a_bucket_refuses_is_told(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    bucket.pipe_file("/bucket/secret/config.json", b"{}")
    assert refused("s3://bucket/none/config.json", capsys) == "s3://bucket/none/config.json was not found"
    assert refused("s3://bucket/none", capsys) == "s3://bucket/none was not found"
    said = refused("s3://bucket/secret/config.json", capsys)
    assert said == "s3://bucket/secret/config.json cannot be read with your credentials: Access Denied"


def test_a_file_of_a_bucket_that_is_written_anew_in_between_is_refused(bucket: Bucket) -> None:
    bucket.pipe_file("/bucket/model.gguf", bytes(10 * FIRST))
    file, size = elsewhere("s3://bucket/model.gguf").open()
    assert (file.read(4), size) == (bytes(4), 10 * FIRST)
    bucket.pipe_file("/bucket/model.gguf", bytes(10 * FIRST))
    with pytest.raises(BadInput, match="changed while it was read"):
        file.read(2 * FIRST)


def test_a_store_that_does_not_answer_is_not_waited_for(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def silent(*_: object, timeout: float, **__: object) -> None:
        assert timeout == http.PATIENCE
        raise TimeoutError

    monkeypatch.setattr(Bucket, "info", silent)
    assert refused("s3://bucket/config.json", capsys) == "s3://bucket/config.json: the store did not answer in time"


def test_a_store_without_its_package_says_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(known_implementations, "gs", {"class": "no_gcsfs.Files", "err": "install it"})
    monkeypatch.delitem(_registry, "gs", raising=False)
    assert refused("gs://bucket/model", capsys) == "gs:// needs gcsfs: pip install 'tallystick[stores]'"


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("htps://host/config.json", ("'htps://host/config.json': unsupported scheme 'htps'; nearest: https, http;"
                                    " use hf://org/name")),
        ("hf://gpt2", "'hf://gpt2' names no repository: use hf://org/name, optionally"),
        ("hf://org/../x", "names no repository"),
        ("hf://org/name/../x", "names no repository"),
        ("hf:/org/name", "addresses have two slashes after the colon, as in hf://org/name"),
        ("hf:org", "addresses have two slashes after the colon"),
        ("https://", "'https://' is not the address of a file"),
        ("https://host:port/config.json", "is not the address of a file"),
        ("https://host/con fig.json", "is not the address of a file"),
        ("https://host/folder/", "folders on the web cannot be listed"),
        ("https://host/folder", "https://host/folder cannot be listed: name a file"),
        ("https://me:secret@host/config.json", "an address of host with a password is refused, because"),
        ("https://huggingface.co/org/name", "is a web page: use hf://org/name, optionally"),
        ("s3:///key", "'s3:///key' names no bucket: use s3://bucket/folder"),
    ],
)  # fmt: skip
def test_an_address_that_is_none_says_what_one_looks_like(
    source: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(source, capsys)
    assert said in line
    assert "secret" not in line
