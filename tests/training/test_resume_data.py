"""A run goes on with its own tokens and texts alone: what has changed is said in one line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from hostile import mutations, rewritten
from resumed_runs import begun, made, newest, resumed, sealed
from tallystick.errors import BadInput
from tallystick.training.corpus.token_files import HEADER
from tallystick.training.run import prepared
from tallystick.training.wholeness import WHOLE
from training import small

__all__ = ["begun", "made"]  # fixtures

# -- tokens ---------------------------------------------------------------------------------------


def tokens_of(config) -> Path:
    return Path(config.out) / "data" / "train-00000.tokens"


def test_any_list_of_tokens_is_read(begun):
    path = Path(begun.out) / "data" / WHOLE
    document = json.loads(path.read_text())
    for content in (
        *rewritten(document, most=26, by_commit=True),
        *mutations(path.read_bytes(), most=33, by_commit=True),
    ):
        path.write_bytes(content)
        resumed(begun)


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../data/train-00000.tokens", "validation-00000.tokens", "train-0.tokens\0", "", 5, None, "."]
)
def test_files_of_tokens_elsewhere_are_not_opened(begun, name):
    path = Path(begun.out) / "data" / WHOLE
    said = json.loads(path.read_text())
    said["train"]["shards"][0][0] = name
    path.write_text(json.dumps(said))
    assert "was modified" in resumed(begun)


@pytest.mark.parametrize("dtype", ["O", "V1000000000", "<u8", "<f2", "u1", "|S99", "<M8[s]", ["<u2"], None, "<u4", 2])
def test_tokens_of_another_dtype_are_refused(begun, dtype):
    path = tokens_of(begun)
    content = path.read_bytes()
    header = {**json.loads(content[:HEADER]), "dtype": dtype}
    path.write_bytes(json.dumps(header).encode().ljust(HEADER) + content[HEADER:])
    assert "remove its folder" in resumed(begun)


@pytest.mark.parametrize("harm", ["pipe", "device", "link", "folder", "longer", "huge", "nested", "empty", "gone"])
def test_tokens_that_are_no_file_of_ours_are_refused(begun, harm):
    path = tokens_of(begun)
    content = path.read_bytes()
    path.unlink()
    match harm:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "link":
            path.with_name("other").write_bytes(content)
            path.symlink_to("other")
        case "folder":
            path.mkdir()
        case "longer":
            path.write_bytes(content + b"\0\0")
        case "huge":
            path.write_bytes(content)
            os.truncate(path, 1 << 40)
        case "nested":
            path.write_bytes(b"[" * HEADER + content[HEADER:])
        case "empty":
            path.write_bytes(b"")
    assert isinstance(resumed(begun), str)


def test_an_id_that_the_tokenizer_does_not_have_is_refused(begun):
    """With right digests everywhere: else it would be an index out of range in the embedding."""
    from hashlib import blake2b

    path, listing = tokens_of(begun), Path(begun.out) / "data" / WHOLE
    content = bytearray(path.read_bytes())
    content[-2:] = b"\xff\xff"
    path.write_bytes(content)
    said = json.loads(listing.read_text())
    said["train"]["shards"][0][2] = blake2b(content[HEADER:], digest_size=16).hexdigest()
    listing.write_text(json.dumps(said))
    assert "holds the id 65,535, but the tokenizer has 257 entries" in resumed(begun)


# -- data that changed between two runs -----------------------------------------------------------


@pytest.fixture
def with_texts(tmp_path):
    """A run that has ended, with its texts."""
    config = small(tmp_path, steps=4, save_every=2)
    run = prepared(config)
    list(run.events())
    run.close()
    return config, tmp_path / "texts"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda texts: (texts / "new.txt").write_text("new"), "it had 12 files of .* bytes, now 13 files of"),
        (lambda texts: (texts / "03.txt").unlink(), "it had 12 files of .* bytes, now 11 files of"),
        (lambda texts: (texts / "03.txt").rename(texts / "3.txt"), "it had 12 files"),
        (
            lambda texts: (texts / "03.txt").write_text((texts / "03.txt").read_text().swapcase()),
            "its files have the same names and sizes, but other content",
        ),
    ],
)  # fmt: skip
def test_texts_that_have_changed_are_refused_with_what_changed(with_texts, change, message):
    config, texts = with_texts
    change(texts)
    with pytest.raises(BadInput, match=f"texts has changed since the tokens in .* were made: {message}"):
        prepared(config, resume="auto")


def test_texts_with_other_times_are_the_same_and_texts_that_are_gone_are_not_needed(with_texts):
    config, texts = with_texts
    for path in texts.iterdir():
        os.utime(path, (0, 0))
    assert resumed(config) == 4
    shutil.rmtree(texts)
    assert resumed(config) == 4


def test_tokens_made_again_from_other_texts_are_not_those_of_the_run(with_texts):
    config, texts = with_texts
    (texts / "03.txt").write_text("other words")
    shutil.rmtree(Path(config.out) / "data")
    assert "is from a run on other data: the train tokens had" in resumed(config)


def test_a_checkpoint_of_a_version_that_did_not_say_its_data_is_gone_on_with(begun):
    path = newest(begun) / "progress.json"
    said = json.loads(path.read_text())
    del said["data"]
    path.write_text(json.dumps(said))
    sealed(newest(begun))
    listing = Path(begun.out) / "data" / WHOLE
    said = json.loads(listing.read_text())
    del said["texts"]
    listing.write_text(json.dumps(said))
    assert resumed(begun) == 4
