"""Where a host may lead: to which other hosts, to which addresses, and never the user's token."""

from __future__ import annotations

import json
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from checkpoints import write
from host import Handler, Host, publish
from remote_hosts import CONFIG, PARAMETERS, SHAPES, Wire, contents, directly, folder, host, hub, refused, storage, wire
from tallystick import BadInput, count
from tallystick.files import hosts
from tallystick.files.hosts import HERE, LINK, PRIVATE, PUBLIC, Reach

__all__ = ["directly", "folder", "host", "hub", "storage", "wire"]  # fixtures

METADATA = "169.254.169.254"
WHOLE = "config.json"


def pointing(to: str) -> Any:
    return lambda ask: ask.answer(302, Location=to)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names of hosts with their addresses; those after the first resolution stand behind a
    semicolon.
    """
    known: dict[str, list[str]] = {}
    really = socket.getaddrinfo

    def resolve(name: str, port: Any, *rest: Any, **more: Any) -> Any:
        if name not in known or "flags" in more:
            return really(name, port, *rest, **more)
        addresses = known[name].pop(0) if len(known[name]) > 1 else known[name][0]
        return [found for one in addresses.split() for found in really(one, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, host: Host) -> list[str]:
    """The addresses that are connected to, each of which leads to the host here."""
    seen: list[str] = []
    there = urlsplit(host.address)
    connect = socket.socket.connect

    def lead_here(self: socket.socket, where: Any) -> None:
        seen.append(where[0])
        connect(self, (there.hostname, there.port))

    monkeypatch.setattr(socket.socket, "connect", lead_here)
    return seen


# -- kinds of addresses ---------------------------------------------------------------------------

KINDS = {
    PUBLIC: ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"],
    HERE: ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
    LINK: [METADATA, "fe80::1", f"::ffff:{METADATA}", "64:ff9b::a9fe:a9fe", f"::{METADATA}", "2002:a9fe:a9fe::1"],
    PRIVATE: [
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fc00::1",
        "224.0.0.1", "ff02::1", "255.255.255.255", "fec0::1", "198.18.0.1", "64:ff9b:1::1",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind, found in KINDS.items() for one in found])
def test_the_kind_of_an_address(kind: str, address: str) -> None:
    assert hosts.kind_of(address) == kind


# -- redirects ------------------------------------------------------------------------------------

FORMS = [
    METADATA, "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "169.254.43518", f"{METADATA}.", f"[::ffff:{METADATA}]",
    "[fe80::1]", "[::ffff:a9fe:a9fe]",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_redirect_to_a_link_local_address_is_refused_in_every_form(form: str, elsewhere: bool) -> None:
    for first in (PUBLIC, PRIVATE, HERE):
        reach = Reach()
        reach.first = first
        with pytest.raises(BadInput) as error:
            reach.refuse(urlsplit("https://one.org/a"), urlsplit(f"https://{form}/a"), elsewhere=elsewhere)
        assert str(error.value) == f"the host redirects to https://{form}, a link-local address: not followed"


@pytest.mark.parametrize(
    ("before", "after", "followed"),
    [
        ("https://one.org/a", "https://one.org/b", True),
        ("https://one.org/a", "https://ONE.org:443/b", True),
        ("https://one.org/a", "https://one.org./b", True),
        ("http://one.org/a", "https://one.org/b", True),
        ("http://one.org/a", "https://www.one.org/b", True),
        ("https://www.one.org/a", "https://one.org/b", True),
        ("https://bücher.org/a", "https://xn--bcher-kva.org/b", True),
        ("https://one.org/a", "http://one.org/b", False),
        ("https://one.org/a", "https://two.org/b", False),
        ("https://one.org/a", "https://one.org.two.org/b", False),
        ("https://one.org/a", "https://sub.one.org/b", False),
        ("https://one.org/a", "https://one.org:8443/b", False),
        ("http://one.org:8000/a", "https://one.org/b", False),
        ("http://127.0.0.1:8000/a", "http://127.0.0.1:8001/b", False),
        ("http://127.0.0.1:8000/a", "https://127.0.0.1:443/b", False),
        ("http://one.org/a", "http://www.one.org/b", False),
        ("https://one.org/a", "https://one.org@two.org/b", False),
        ("https://one.org/a", "https://me@one.org/b", False),
        ("https://one.org/a", "https://two.org\\@one.org/b", False),
        ("https://one.org/a", "https://one.org%2f.two.org/b", False),
        ("https://one.org/a", "https://one.org:99999/b", False),
        ("https://one.org/a", "https://one.org:0/b", False),
        ("https://one.org/a", "ftp://one.org/b", False),
        ("https://one.org/a", "https:///b", False),
    ],
)
def test_an_address_on_the_web_leads_to_its_own_host_alone(before: str, after: str, followed: bool) -> None:
    reach = Reach()
    reach.first = PUBLIC
    with nullcontext() if followed else pytest.raises(BadInput, match="not followed"):
        reach.refuse(urlsplit(before), urlsplit(after), elsewhere=False)


@pytest.mark.parametrize(
    ("first", "before", "after", "followed"),
    [
        (PUBLIC, "https://huggingface.co/a", "https://cas-bridge.xethub.hf.co/b", True),
        (PUBLIC, "https://huggingface.co/a", "http://cdn-lfs.huggingface.co/b", False),
        (PUBLIC, "http://mirror.org/a", "https://cdn.org/b", True),
        (PUBLIC, "http://mirror.org/a", "http://cdn.org/b", False),
        (PUBLIC, "https://huggingface.co/a", "https://127.0.0.1/b", False),
        (PUBLIC, "https://huggingface.co/a", "https://[fd00::1]/b", False),
        (PRIVATE, "https://10.0.0.5/a", "https://10.0.0.6/b", True),
        (PRIVATE, "https://10.0.0.5/a", "https://127.0.0.1/b", False),
        (HERE, "http://127.0.0.1:80/a", "http://127.0.0.1:81/b", True),
        (HERE, "http://127.0.0.1:80/a", "http://10.0.0.6/b", False),
    ],
)
def test_the_hub_may_lead_to_other_hosts_of_its_kind(first: str, before: str, after: str, followed: bool) -> None:
    reach = Reach()
    reach.first = first
    with nullcontext() if followed else pytest.raises(BadInput, match="not followed"):
        reach.refuse(urlsplit(before), urlsplit(after), elsewhere=True)


def test_a_file_that_lies_at_another_host_says_what_to_do(
    host: Host, storage: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    storage.files["/config.json"] = json.dumps(CONFIG).encode()
    host.answers["/config.json"] = pointing(f"{storage.address}/config.json?key=secret")
    said = refused(f"{host.address}/config.json", capsys)
    assert said == (
        f"{host.address}/config.json: the host redirects to {storage.address}, another host: not followed;"
        " use that address if you trust it"
    )
    assert storage.requests == []


def test_a_redirect_on_the_same_host_is_followed(host: Host) -> None:
    host.files["/deep/config.json"] = json.dumps(CONFIG).encode()
    host.answers["/config.json"] = pointing("deep/config.json")
    assert count(f"{host.address}/config.json").total == PARAMETERS


# -- what a name stands for -----------------------------------------------------------------------


def test_the_address_that_is_connected_to_is_the_one_that_was_looked_at(
    host: Host, names: dict[str, list[str]], connected: list[str]
) -> None:
    names["one.org"] = ["8.8.8.8"]
    host.files = {"/config.json": json.dumps(CONFIG).encode()}
    assert count("http://one.org/config.json").total == PARAMETERS
    assert connected == ["8.8.8.8"]


@pytest.mark.parametrize("later", ["127.0.0.1", "10.0.0.1", METADATA, "::1", f"::ffff:{METADATA}", "fd00::1"])
def test_a_name_that_stands_for_another_machine_the_next_time_is_not_followed(
    host: Host, names: dict[str, list[str]], connected: list[str], capsys: pytest.CaptureFixture[str], later: str
) -> None:
    names["one.org"] = ["8.8.8.8", later]
    host.answers["/config.json"] = pointing("http://one.org/secret")
    said = refused("http://one.org/config.json", capsys)
    assert f"one.org resolves to {later}, a " in said
    assert said.endswith("address: not followed")
    assert connected == ["8.8.8.8"]
    assert [request.path for request in host.requests] == ["/config.json"]


def test_of_a_name_that_is_public_and_private_the_public_address_is_asked(
    host: Host, names: dict[str, list[str]], connected: list[str]
) -> None:
    names["one.org"] = ["127.0.0.1 8.8.8.8 10.0.0.1"]
    host.files = {"/config.json": json.dumps(CONFIG).encode()}
    assert count("http://one.org/config.json").total == PARAMETERS
    assert connected == ["8.8.8.8"]


def test_a_host_of_the_network_around_is_read_where_the_user_named_it(
    host: Host, names: dict[str, list[str]], connected: list[str]
) -> None:
    names["nas"] = ["192.168.1.5"]
    host.files = {"/config.json": json.dumps(CONFIG).encode()}
    assert count("http://nas/config.json").total == PARAMETERS
    assert connected == ["192.168.1.5"]


def test_a_name_for_a_link_local_address_is_not_asked(
    names: dict[str, list[str]], connected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    names["one.org"] = [METADATA]
    said = refused("http://one.org/config.json", capsys)
    assert said.endswith("one.org resolves to a link-local address: if intended, give the address itself")
    assert refused("http://2852039166/config.json", capsys).endswith("if intended, give the address itself")
    assert connected == []


def test_of_many_addresses_that_do_not_answer_some_are_tried(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def refuse(_: object, where: Any) -> None:
        tried.append(where[0])
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    names["one.org"] = [" ".join(f"8.8.8.{number}" for number in range(50))]
    assert refused("http://one.org/config.json", capsys).endswith("cannot be reached: Connection refused")
    assert len(tried) == hosts.MOST_ADDRESSES


def test_the_hub_that_points_to_a_name_for_this_machine_is_not_followed(
    hub: Host,
    folder: Path,
    names: dict[str, list[str]],
    connected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://hub.org")
    names |= {"hub.org": ["8.8.8.8"], "cdn.org": ["127.0.0.1"]}
    publish(hub, hub, "org/name", contents(folder))
    for path in hub.answers:
        if "/resolve/" in path:
            hub.answers[path] = pointing("https://cdn.org/blob")
    said = refused("hf://org/name", capsys)
    assert "cdn.org resolves to 127.0.0.1, a loopback address: not followed" in said
    assert set(connected) == {"8.8.8.8"}


# -- through a proxy ------------------------------------------------------------------------------


def test_a_proxy_resolves_the_names(host: Host, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user configured may be on this machine, and the names may be known to it alone."""
    monkeypatch.setenv("http_proxy", host.address)
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda _: False)
    host.answers["/config.json"] = lambda ask: ask.piece(json.dumps(CONFIG).encode())
    assert count("http://known.to.the.proxy.invalid/config.json").total == PARAMETERS
    assert [request.path for request in host.requests] == ["http://known.to.the.proxy.invalid/config.json"]


def test_through_a_proxy_a_redirect_to_a_private_address_is_refused_too(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("http_proxy", host.address)
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda _: False)
    for address, kind in ((METADATA, LINK), ("127.0.0.1", HERE)):  # although the proxy is on this machine
        host.answers["/config.json"] = pointing(f"http://{address}/latest")
        assert f"redirects to http://{address}, a {kind} address" in refused("http://one.invalid/config.json", capsys)


# -- the hub's token, and names with tricks -------------------------------------------------------


def test_a_token_that_is_switched_off_is_not_sent(hub: Host, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    publish(hub, hub, "org/name", contents(folder))
    count("hf://org/name")
    assert {request.authorization for request in hub.requests} == {None}


def test_a_token_does_not_come_back_with_a_redirect_to_the_hub(hub: Host, storage: Host, folder: Path) -> None:
    publish(hub, storage, "org/name", contents(folder))
    for path, content in list(storage.files.items()):
        hub.files[f"/again{path}"] = content
        storage.answers[path] = lambda ask, to=f"{hub.address}/again{path}": ask.answer(302, Location=to)
    count("hf://org/name")
    assert {one.authorization for one in hub.requests if one.path.startswith("/again")} == {None}
    assert {one.authorization for one in storage.requests} == {None}


@pytest.mark.parametrize(
    "endpoint",
    ["file:///etc", "ftp://host", "huggingface.co", "https://", "http://host:x", "http://me:secret@host", ""],
)
def test_an_endpoint_that_is_none_is_named(
    hub: Host, endpoint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    assert refused("hf://org/name", capsys).startswith("HF_ENDPOINT is ")


@pytest.mark.parametrize(
    "name",
    [
        "a/b@../../x", "a/b@..", "a/b@.", "a/b@%2e%2e", "a/b@%2e%2e%2fx", "a/b@x%2f..%2fy", "a/..", "../a", "a/b/../c",
        "a/./b", "a /b", "a\n/b", "ä/b", "a%2fb/c/..", "a/b\\..\\c@d/..", "",
    ],
)  # fmt: skip
def test_a_name_with_steps_upwards_is_never_asked_for(hub: Host, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "names no repository" in refused(f"hf://{name}", capsys)
    assert hub.requests == []


@pytest.mark.parametrize("name", ["a/b@x y", "a/b@x\ny", "a/b@ä", "a/b@x?y=z#w", "a/b@%2e%2e%252f"])
def test_a_revision_with_odd_characters_is_one_part_of_a_path(
    hub: Host, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "was not found: the host answers 404" in refused(f"hf://{name}", capsys)
    (request,) = hub.requests
    assert request.path.count("/") == len(["", "api", "models", "a", "b", "revision", "x"]) - 1
    assert request.path.endswith("?expand=sha")
    assert request.path.isascii()
    assert " " not in request.path


@pytest.mark.parametrize(
    "shard", ["http://127.0.0.1:1/x.safetensors", "../x.safetensors", "//host/x", "a\\b", "/x", ".."]
)
def test_an_index_names_no_other_place(host: Host, shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    host.files["/model.safetensors.index.json"] = json.dumps({"weight_map": {"wte.weight": shard}}).encode()
    assert "not a file name in its own folder" in refused(f"{host.address}/model.safetensors.index.json", capsys)
    assert {request.path for request in host.requests} == {"/model.safetensors.index.json"}


@pytest.mark.parametrize("shard", ["x?y.safetensors", "x#y.safetensors", "x y.safetensors", "%2e%2e%2fx.safetensors"])
def test_a_file_name_with_odd_characters_stays_a_file_name(hub: Host, tmp_path: Path, shard: str) -> None:
    content = write(tmp_path / "x", SHAPES).read_bytes()
    index = {"weight_map": dict.fromkeys(SHAPES, shard)}
    publish(hub, hub, "org/name", {"model.safetensors.index.json": json.dumps(index).encode(), shard: content})
    assert count("hf://org/name").total == PARAMETERS


def test_a_file_of_a_host_that_the_user_typed_keeps_its_escapes(host: Host) -> None:
    seen = []

    def answer(ask: Handler) -> None:
        seen.append(ask.path)
        ask.piece(json.dumps(CONFIG).encode())

    host.answers["/a b/config.json"] = answer
    count(f"{host.address}/a%20b/config.json")
    assert seen == ["/a%20b/config.json"]


# -- the hub by HTTPS, without sockets ------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["https://cas-bridge.xethub.hf.co/blob?key=secret", "https://cdn-lfs.huggingface.co/blob"]
)
def test_a_file_of_the_hub_by_its_address_may_lie_at_another_host(wire: Wire, target: str) -> None:
    path = "/org/name/resolve/main/config.json"
    wire.host.answers[path] = pointing(target)
    wire.host.files["/blob"] = json.dumps(CONFIG).encode()
    assert count(f"https://huggingface.co{path}").total == PARAMETERS
    assert {request.authorization for request in wire.host.requests} == {None}


def test_a_file_of_another_site_may_not(wire: Wire, capsys: pytest.CaptureFixture[str]) -> None:
    wire.host.answers["/config.json"] = pointing("https://cdn.org/blob?key=secret")
    said = refused("https://one.org/config.json", capsys)
    assert "the host redirects to https://cdn.org, another host: not followed; use that address" in said
    assert "secret" not in said
