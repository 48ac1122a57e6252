"""Text made tokens: what is read, what goes where, in which order, and what is refused."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import numpy
import pytest
import torch

from tallystick.errors import BadInput
from tallystick.models.tokens import Tokenizer
from tallystick.training.corpus.corpus import Tokens, corpus_of
from tallystick.training.corpus.documents import documents
from tallystick.training.corpus.tokenizer import tokenizer_of


@pytest.fixture
def folder(tmp_path):
    """Thirty texts, one in a subfolder, and what is none."""
    root = tmp_path / "texts"
    (root / "more").mkdir(parents=True)
    for number in range(29):
        (root / f"{number:02d}.txt").write_text(f"text {number} " * 20, encoding="utf-8")
    (root / "more" / "last.md").write_text("é" * 100, encoding="utf-8")
    (root / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    (root / ".hidden").write_text("secret")
    (root / "empty.txt").write_text("")
    return root


def corpus(source, tmp_path, **more):
    said = {"tokenizer": "bytes", "validation": 0.2, "sequence": 16, **more}
    return corpus_of(str(source), folder=tmp_path / "data", **said)


def everything(tokens):
    return numpy.concatenate(tokens._shards).tolist()


def test_a_folder_gives_every_text_and_nothing_else(folder):
    found = list(documents(str(folder)))
    assert [document.name for document in found] == [f"{number:02d}.txt" for number in range(29)] + ["more/last.md"]
    assert found[-1].text == "é" * 100


def test_the_standard_library_is_found():
    first = next(iter(documents("stdlib")))
    assert (Path(sysconfig.get_paths()["stdlib"]) / first.name).read_text(encoding="utf-8") == first.text


def test_records_are_read_line_by_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n\n"two"\n{"content": "three"}\n')
    assert [(document.name, document.text) for document in documents(str(path))] == [
        ("a.jsonl#1", "one"),
        ("a.jsonl#3", "two"),
        ("a.jsonl#4", "three"),
    ]


def test_parquet_is_read_by_its_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": [1, 2], "text": ["one", "two"]}), tmp_path / "a.parquet")
    assert [document.text for document in documents(str(tmp_path / "a.parquet"))] == ["one", "two"]


def test_both_splits_together_hold_every_document_once(folder, tmp_path):
    made = corpus(folder, tmp_path)
    texts = [document.text for document in documents(str(folder))]
    wanted = sorted(token for text in texts for token in [*text.encode(), 256])
    assert sorted(everything(made.train) + everything(made.validation)) == wanted
    assert made.train.count > made.validation.count > 0


def test_a_document_stays_in_its_split_when_others_come(folder, tmp_path):
    first = corpus(folder, tmp_path / "one")
    (folder / "new.txt").write_text("new " * 50)
    second = corpus(folder, tmp_path / "two")
    held = [text.encode() for text in bytes_of(first.validation)]
    assert set(held) <= {text.encode() for text in bytes_of(second.validation)}


def bytes_of(tokens):
    return bytes(token if token < 256 else 0 for token in everything(tokens)).decode().strip("\0").split("\0")


def test_the_end_of_a_single_text_is_kept_apart(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("a" * 800 + "b" * 200)
    made = corpus(path, tmp_path)
    assert everything(made.train) == [97] * 800 + [256]
    assert everything(made.validation) == [98] * 200 + [256]


def test_tokens_are_made_once(folder, tmp_path, monkeypatch):
    first = corpus(folder, tmp_path)
    monkeypatch.setattr("tallystick.training.corpus.corpus.documents", None)
    assert everything(corpus(folder, tmp_path).train) == everything(first.train)


def test_a_bpe_is_trained_on_the_text_itself(folder, tmp_path):
    made = corpus(folder, tmp_path, tokenizer="bpe:300")
    assert made.tokenizer.size <= 300
    ids = everything(made.validation)
    assert "text" in made.tokenizer.decode(ids) or "é" in made.tokenizer.decode(ids)
    assert len(ids) < sum(len(text.encode()) + 1 for text in bytes_of(corpus(folder, tmp_path / "bytes").validation))


def test_many_shards_are_one_text(folder, tmp_path, monkeypatch):
    whole = corpus(folder, tmp_path / "whole")
    monkeypatch.setattr("tallystick.training.corpus.corpus.SHARD", 500)
    parts = corpus(folder, tmp_path / "parts")
    assert len(parts.train._shards) > 3
    assert everything(parts.train) == everything(whole.train)


# -- batches --------------------------------------------------------------------------------------


def tokens_of(*lengths):
    start, shards = 0, []
    for length in lengths:
        shards.append(numpy.arange(start, start + length, dtype="<u2"))
        start += length
    return Tokens(shards, start)


def test_targets_are_the_tokens_after_the_inputs():
    inputs, targets = tokens_of(100).batch(0, 2, 7, seed=3)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(targets[:, -1], inputs[:, -1] + 1)


def test_every_window_comes_once_a_round_and_each_round_in_another_order():
    tokens = tokens_of(57, 3, 30)  # 8 windows of 7, none, and 4
    assert tokens.windows(7) == 12
    rounds = [
        [int(row[0]) for number in range(turn * 4, turn * 4 + 4) for row in tokens.batch(number, 3, 7, seed=1)[0]]
        for turn in range(2)
    ]
    wanted = [*range(0, 56, 7), *range(60, 88, 7)]
    assert sorted(rounds[0]) == sorted(rounds[1]) == wanted
    assert rounds[0] != rounds[1]
    assert rounds[0] != wanted


def test_a_batch_follows_from_its_number_alone():
    tokens = tokens_of(1000)
    seen = [tokens.batch(number, 4, 16, seed=5)[0] for number in range(30)]
    assert all(torch.equal(tokens.batch(number, 4, 16, seed=5)[0], seen[number]) for number in (29, 3, 17))
    assert not torch.equal(tokens.batch(3, 4, 16, seed=6)[0], seen[3])


def test_without_a_seed_the_order_is_that_of_the_text():
    assert [int(row[0]) for row in tokens_of(100).batch(1, 3, 7, seed=None)[0]] == [21, 28, 35]


def test_bits_per_byte_of_a_uniform_guess_over_bytes_are_eight():
    assert tokens_of(512).bits_per_byte(torch.log(torch.tensor(256.0)).item()) == pytest.approx(8)


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x89PNG\x00\xff", "is not text: byte 4"),
        (b"abc\x00def", "is not text: byte 3"),
        (b"short", r"the train text has 5 tokens, fewer than sequence \+ 1 \(16 \+ 1\)"),
    ],
)
def test_files_that_hold_no_text_to_train_on(tmp_path, content, message):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        corpus(path, tmp_path)
    assert not list((tmp_path).glob(".data*"))


def test_records_that_are_none(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n{"txt": "two"}\n')
    with pytest.raises(BadInput, match="line 2 has no text in text or content"):
        list(documents(str(path)))
    path.write_text('{"text": "one"}\n{"text"\n')
    with pytest.raises(BadInput, match="line 2 is not JSON"):
        list(documents(str(path)))


def test_data_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="no file or folder 'nowhere' to train on; stdlib means"):
        corpus("nowhere", tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match="none holds no text to train on: no file of it is UTF-8 text"):
        corpus(tmp_path / "none", tmp_path)


def test_a_folder_made_otherwise_is_not_used(folder, tmp_path):
    corpus(folder, tmp_path)
    with pytest.raises(BadInput, match="was made with tokenizer = 'bytes', but this run has 'bpe:300'"):
        corpus(folder, tmp_path, tokenizer="bpe:300")


def test_another_tokenizer_beside_the_tokens_is_seen(folder, tmp_path):
    corpus(folder, tmp_path)
    Tokenizer.trained(["abc"], 260).save(tmp_path / "data")
    with pytest.raises(BadInput, match="did not make its tokens"):
        corpus(folder, tmp_path)


@pytest.mark.parametrize("harm", ["cut", "changed", "header"])
def test_tokens_that_are_not_those_written_are_seen(folder, tmp_path, harm):
    corpus(folder, tmp_path)
    path = tmp_path / "data" / "train-00000.tokens"
    content = bytearray(path.read_bytes())
    if harm == "cut":
        del content[-10:]
    elif harm == "changed":
        content[-1] ^= 1
    else:
        content[:10] = b"x" * 10
    path.write_bytes(content)
    with pytest.raises(BadInput, match="remove its folder"):
        corpus(folder, tmp_path)


@pytest.mark.parametrize("word", ["byte", "bpe", "bpe:many", "bpe:10"])
def test_tokenizers_that_are_none(word):
    with pytest.raises(BadInput, match=r"tokenizer|BPE"):
        tokenizer_of(word, lambda: ["abc"])


def test_what_the_folder_says_of_itself(folder, tmp_path):
    corpus(folder, tmp_path)
    whole = json.loads((tmp_path / "data" / "whole.json").read_text())
    assert whole["made_from"] == {"data": str(folder), "tokenizer": "bytes", "validation": 0.2}
    assert whole["train"]["shards"][0][0] == "train-00000.tokens"


def test_a_text_that_was_too_short_may_grow(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("short")
    with pytest.raises(BadInput, match=r"fewer than sequence \+ 1 \(16 \+ 1\)"):
        corpus(path, tmp_path)
    path.write_text("long enough " * 20)
    assert corpus(path, tmp_path).train.count > 16


def test_a_list_of_shards_that_is_none_is_refused(folder, tmp_path):
    corpus(folder, tmp_path)
    (tmp_path / "data" / "whole.json").write_text("{}")
    with pytest.raises(BadInput, match=r"whole.json was modified: remove .*data to make it again"):
        corpus(folder, tmp_path)
