"""Repositories of the hub, from a hub on this machine: listed, named in all ways, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host import Host, publish
from remote_hosts import (
    PARAMETERS,
    contents,
    directly,
    folder,
    host,
    hub,
    refused,
    same,
    storage,
)
from tallystick import BadInput, count
from tallystick.cli.main import main

__all__ = ["directly", "folder", "host", "hub", "storage"]  # fixtures


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
