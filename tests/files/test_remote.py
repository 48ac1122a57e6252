"""Sources at addresses, from a host on this machine: headers alone are fetched."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import tallystick
from checkpoints import write, write_config
from gguf_files import LLAMA, gguf, llama
from host import Host, publish
from remote_hosts import (
    CONFIG,
    FIRST,
    PARAMETERS,
    SHAPES,
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
from tallystick.sources.locate import locate_weights

__all__ = ["directly", "folder", "host", "hub", "storage"]  # fixtures


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
