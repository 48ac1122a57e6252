"""Models from files that the page holds: in slices, of each format, from the hub or dropped, with
the command line's numbers; a hostile file gets one line.
"""

import base64
import hashlib
import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import gguf_files
import tallystick
from checkpoints import gpt2_published, write_config, write_sharded
from tallystick.web.answers import answers
from tallystick.web.page_files import MOST_AT_ONCE
from tallystick.web.request import forget

LLAMA = {"general.architecture": "llama"}
CONFIG = {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64, "n_embd": 128, "n_layer": 2, "n_head": 4}
SHAPES = gpt2_published(layers=2, width=128, vocabulary=1000, positions=64)


@pytest.fixture(autouse=True)
def _forget():
    forget()


def asked(contents, source="org/name", *, sizes=None, **more):
    """The reply, after the pieces that it needs were handed in, and how many bytes these are."""
    sizes = sizes or {name: len(content) for name, content in contents.items()}
    version = hashlib.sha256(b"".join(contents.values())).hexdigest()
    request = {"model": {"files": {"source": source, "sizes": sizes, "version": version}}, "wanted": ["count"], **more}
    reply, sent = answers(request, None), 0
    for _ in range(100):
        if "needed" not in reply:
            return reply, sent
        pieces = [
            [name, start, base64.b64encode(contents[name][start : start + length]).decode()]
            for name, start, length in reply["needed"]
        ]
        sent += sum(length for _, _, length in reply["needed"])
        reply = answers({**request, "pieces": {reply["of"]: pieces}}, None)
    raise AssertionError("more is needed each time")


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """A sharded GPT-2 with its config."""
    folder = tmp_path_factory.mktemp("sharded")
    names = list(SHAPES)
    write_sharded(folder, {name: SHAPES[name] for name in names[:9]}, {name: SHAPES[name] for name in names[9:]})
    write_config(folder, CONFIG)
    return folder


def without_source(ledger):
    return {key: value for key, value in json.loads(json.dumps(ledger)).items() if key not in ("source", "notes")}


def test_a_folder_is_counted_as_the_command_line_counts_it(sharded):
    contents = contents_of(sharded)
    reply, sent = asked(contents)
    expected = tallystick.count(sharded).to_dict()
    assert without_source(reply["count"]["answer"]) == without_source(expected)
    assert reply["count"]["answer"]["source"] == "org/name"
    assert reply["count"]["command"] == "tallystick count org/name --by role"
    assert sent < 400_000 < sum(map(len, contents.values()))
    assert [one["key"] for one in reply["count"]["controls"]][:2] == ["n_layer", "n_embd"]


def test_its_sizes_can_be_moved(sharded):
    reply, _ = asked(contents_of(sharded), set={"n_layer": 7})
    assert reply["count"]["answer"]["totals"]["unique"] == tallystick.count({**CONFIG, "n_layer": 7}).total


def test_two_sources_are_compared(sharded):
    contents = contents_of(sharded)
    sizes = {name: len(content) for name, content in contents.items()}
    reply, _ = asked(contents, wanted=["compare"], other={"files": {"source": "org/other", "sizes": sizes}})
    assert reply["compare"]["answer"]["gap"] == 0


@pytest.mark.parametrize(
    ("source", "word"), [("org/name@refs/pr/1", "hf://org/name@refs/pr/1"), ("folder", "./folder")]
)
def test_the_command_names_the_source(sharded, source, word):
    reply, _ = asked(contents_of(sharded), source)
    assert f" {word} " in reply["count"]["command"]


def written(folder):
    """A file of each format that the page reads, by its name."""
    import torch

    tensors = {
        "model.embed_tokens.weight": np.ones((500, 64), np.float32),
        "lm_head.weight": np.ones((500, 64), np.float32),
    }
    save_file(tensors, folder / "toy.safetensors")
    torch.save({name: torch.from_numpy(value) for name, value in tensors.items()}, folder / "toy.pt")
    gguf_files.written(folder / "toy.gguf", gguf_files.llama(), LLAMA)
    return contents_of(folder)


@pytest.mark.parametrize("name", ["toy.safetensors", "toy.pt", "toy.gguf"])
def test_one_file_of_each_format_is_counted_in_slices(name, tmp_path):
    contents = written(tmp_path)[name]
    reply, _ = asked({name: contents}, name)
    expected = tallystick.count(tmp_path / name)
    assert without_source(reply["count"]["answer"]) == without_source(expected.to_dict())
    assert reply["count"]["command"] == f"tallystick count {name} --by role"


def test_a_large_file_is_never_read_whole(tmp_path):
    save_file({"a": np.zeros(300_000, np.float32)}, tmp_path / "a.safetensors")
    contents = (tmp_path / "a.safetensors").read_bytes()
    length = int.from_bytes(contents[:8], "little")
    size, header = 400_000_000_000, json.loads(contents[8 : 8 + length])
    header["a"] |= {"shape": [(size - 8 - length) // 4 - 4], "data_offsets": [0, (size - 8 - length) // 4 * 4 - 16]}
    text = json.dumps(header).encode()
    size = 8 + len(text) + header["a"]["data_offsets"][1]
    start = len(text).to_bytes(8, "little") + text + bytes(70_000)
    reply, sent = asked({"a.safetensors": start}, "a.safetensors", sizes={"a.safetensors": size})
    assert reply["count"]["answer"]["totals"]["unique"] == header["a"]["shape"][0]
    assert sent < 100_000


HOSTILE = {
    "picture.png": b"\x89PNG" + bytes(100),
    "notes.docx": b"PK\x03\x04" + bytes(500),
    "empty.gguf": b"",
    "rubbish.gguf": b"rubbish" * 100,
    "cut.gguf": b"GGUF\x03\x00\x00\x00" + b"\xff" * 16,
    "cut.pt": b"PK\x03\x04" + b"\xff" * 200,
    "pickle.pt": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
    "long.safetensors": (2**60).to_bytes(8, "little") + b"{}",
    "no.safetensors": b"12345678{}",
    "config.json": b"[" * 50_000,
    "model.safetensors.index.json": b'{"weight_map": {"a": "../../etc/passwd"}}',
    "tokenizer.json": b'{"version": "1.0"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_model_gets_one_line(name):
    reply, _ = asked({name: HOSTILE[name]}, name)
    assert "\n" not in reply["count"]["error"]
    assert "bug in tallystick" not in reply["count"]["error"]
    assert name in reply["count"]["error"]


def test_what_the_page_reads_is_said_of_another_file():
    reply, _ = asked({"picture.png": HOSTILE["picture.png"]}, "picture.png")
    assert reply["count"]["error"] == (
        "picture.png is neither a config nor weights: open a config.json, .safetensors, .gguf, .pt, .bin, or a folder with them"
    )


@pytest.mark.parametrize(
    "more",
    [{"model": {"files": {"source": "a", "sizes": {}}}}, {"model": {"files": {"source": "a", "sizes": {"a": -1}}}},
     {"model": {"files": {"source": "a", "sizes": {"a": "x"}}}}, {"model": {"files": 3}}, {"model": {"files": {"sizes": {"a": 1}}}}],
)  # fmt: skip
def test_files_that_make_no_sense_get_a_line(more):
    assert "error" in answers({"wanted": ["count"], **more}, None)["count"]


@pytest.mark.parametrize(
    "pieces",
    [
        3,
        {"model": 3},
        {"model": [[]]},
        {"model": [["a", 0, "?"]]},
        {"model": [["a", 0, "AAAA"]]},
        {"model": [["b", 0, ""]]},
    ],
)
def test_pieces_that_make_no_sense_are_refused(pieces):
    from tallystick.web.reply import reply_to

    model = {"files": {"source": "a", "sizes": {"a": 2}}}
    reply = json.loads(reply_to(json.dumps({"model": model, "wanted": ["count"], "pieces": pieces})))
    assert "\n" not in reply["error"]
    assert "bug" not in reply["error"]


def test_a_reply_asks_for_no_more_than_a_request_can_carry():
    sizes = {f"model-{number:05}-of-00200.safetensors": 10**9 for number in range(1, 201)}
    index = json.dumps({"weight_map": {f"t{number}": name for number, name in enumerate(sizes)}}).encode()
    name = "model.safetensors.index.json"
    request = {"model": {"files": {"source": "a/b", "sizes": {name: len(index), **sizes}}}, "wanted": ["count"]}
    assert answers(request, None)["needed"] == [[name, 0, len(index)]]
    pieces = {"model": [[name, 0, base64.b64encode(index).decode()]]}
    reply = answers({**request, "pieces": pieces}, None)
    assert len(reply["needed"]) > 50
    assert sum(length for _, _, length in reply["needed"]) <= MOST_AT_ONCE


@pytest.mark.parametrize(
    ("change", "rows", "relation", "why"),
    [
        (0, 50, "copied", None),
        (1, 50, "untied", None),
        (0, 5000, "unknown", "their first 65,536 bytes are equal, and the rest is not read"),
        (1, 5000, "untied", None),
    ],
)
def test_the_ties_of_a_dropped_folder(change, rows, relation, why, tmp_path):
    matrix = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
    tensors = {"model.embed_tokens.weight": matrix, "lm_head.weight": matrix + change}
    save_file(tensors, tmp_path / "model.safetensors")
    write_config(tmp_path, {"model_type": "llama", "vocab_size": rows, "tie_word_embeddings": True})
    reply, sent = asked(contents_of(tmp_path), "folder", wanted=["ties"])
    group = reply["ties"]["answer"]["groups"][0]
    assert (group["relation"], group["why"]) == (relation, why)
    assert sent < 300_000
    if relation == "untied":
        assert reply["ties"]["answer"]["problems"][0]["code"] == tallystick.ties(tmp_path).problems[0].code
