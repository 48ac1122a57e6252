"""Tokenizers: bytes, trained on the spot, read from files, and kept."""

import json

import pytest

from tallystick.errors import BadInput
from tallystick.models.tokens import Tokenizer

TEXT = "héllo\n wörld ✓ \x00\t"


def test_bytes_are_the_bytes_of_utf8():
    tokenizer = Tokenizer.bytes()
    assert tokenizer.encode(TEXT) == list(TEXT.encode())
    assert tokenizer.decode(list(TEXT.encode())) == TEXT
    assert (tokenizer.size, tokenizer.end) == (257, 256)


@pytest.mark.parametrize("tokenizer", [Tokenizer.bytes(), Tokenizer.trained(["hello world " * 9, "abc abd"], 270)])
def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.encode(TEXT) == tokenizer.encode(TEXT)
    assert (again.fingerprint, again.size, again.end) == (tokenizer.fingerprint, tokenizer.size, tokenizer.end)
    assert again.decode(again.encode(TEXT)) == TEXT


def test_one_that_was_trained_merges_what_is_frequent():
    tokenizer = Tokenizer.trained(["hello world " * 9], 264)
    assert tokenizer.size == 264
    assert len(tokenizer.encode("hello")) < 5
    assert tokenizer.end is not None


def test_a_text_that_spells_the_end_out_does_not_get_it():
    tokenizer = Tokenizer.bytes()
    assert tokenizer.encode_all(["<|endoftext|>"]) == [list(b"<|endoftext|>")]
    assert tokenizer.encode("a<|endoftext|>") == [97, 256]


def test_gpt2_style_files_are_read(tmp_path):
    """Ids and merges by hand: h, e, he, and the end."""
    (tmp_path / "vocab.json").write_text(json.dumps({"h": 0, "e": 1, "he": 2, "<|endoftext|>": 3}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\n")
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.encode("heh<|endoftext|>") == [2, 0, 3]
    assert tokenizer.end == 3


def test_a_folder_without_one_says_what_to_do(tmp_path):
    with pytest.raises(BadInput, match=r"holds no tokenizer.*--tokenizer bytes"):
        Tokenizer.load(tmp_path)


def test_rubbish_is_no_tokenizer(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"a": 1}')
    with pytest.raises(BadInput, match="is not a tokenizer"):
        Tokenizer.load(tmp_path)


def test_a_vocabulary_smaller_than_the_bytes_is_refused():
    with pytest.raises(BadInput, match="256 bytes"):
        Tokenizer.trained(["a"], 200)
