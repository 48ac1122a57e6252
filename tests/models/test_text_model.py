"""A checkpoint that reads and writes text: its tokenizer, its beginning and its ends, and texts
piece by piece.
"""

import json

import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import BadInput
from tallystick.models import Decoder, save_pretrained
from tallystick.models.generation import Unfolding, generate
from tallystick.models.sampling import Sampling
from tallystick.models.text_model import TextModel
from tallystick.models.tokens import END, Tokenizer

SIZES = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "initializer_range": 0.3}


def saved(folder, rows, **settings):
    torch.manual_seed(0)
    save_pretrained(Decoder.of({"model_type": "gpt2", "vocab_size": rows, **SIZES, **settings}), folder)
    return folder


def in_words():
    """In the manner of Llama's: a word's first character holds its space, and <s> is set before
    every text.
    """
    words = ["<s>", "</s>", "▁a", "▁b", "c", "▁", "a", "b"]
    ids = {word: place for place, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ids, [("▁", "a"), ("▁", "b")]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = tokenizers.decoders.Metaspace(prepend_scheme="first")
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return Tokenizer(tokenizer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = saved(tmp_path_factory.mktemp("bytes") / "model", 257)
    Tokenizer.bytes().save(folder)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return TextModel.load(folder)


def written(model, prompts, **settings):
    writing = model.write(prompts, **settings)
    pieces = list(zip(*writing, strict=True))
    for shown, text in zip(pieces, writing.continuations, strict=True):
        assert "".join(shown) == text.text
    return writing.continuations


def test_texts_are_those_of_the_tokens(model):
    prompts = ["Once", "né ✓", ""]
    read = [list(b"Once"), list("né ✓".encode()), [256]]
    expected = generate(model.decoder, read, tokens=30, stop=[256])
    for text, ids, prompt in zip(written(model, prompts, tokens=30), expected, prompts, strict=True):
        assert text.text == bytes(ids).decode(errors="replace")
        assert (text.prompt, text.tokens, text.ended) == (prompt, len(ids), "length" if len(ids) == 30 else "stop")


def test_a_string_ends_its_text_and_no_other(model):
    warm = {"tokens": 40, "seed": 3, "sampling": Sampling(temperature=1.0)}
    free = written(model, ["ab", "c"], **warm)
    word = free[0].text[5:8]
    stopped = written(model, ["ab", "c"], stop=[word], **warm)
    assert (stopped[0].text, stopped[0].ended) == (free[0].text[:5], "stop")
    assert stopped[0].tokens < free[0].tokens
    assert word not in free[1].text
    assert stopped[1] == free[1]


def test_writing_stops_when_every_text_has_ended(model):
    first = written(model, ["ab"], tokens=1)[0].text
    writing = model.write(["ab", "ab"], tokens=60, stop=[first])
    assert len(list(writing)) == 1


def test_without_a_number_as_many_tokens_are_written_as_fit(model):
    assert written(model, ["a" * 60])[0].tokens == 5


@pytest.mark.parametrize(
    ("config", "generation", "expected"),
    [
        ({}, None, {256}),
        ({"eos_token_id": 7}, None, {7}),
        ({"eos_token_id": 7}, {"eos_token_id": [3, 5]}, {3, 5}),
        ({"eos_token_id": 50256}, None, {256}),  # of the vocabulary that the type has by default
        ({"eos_token_id": None}, {"eos_token_id": None}, {256}),
    ],
)
def test_the_tokens_that_end_a_text(tmp_path, config, generation, expected):
    folder = saved(tmp_path / "model", 300, **config)
    Tokenizer.bytes().save(folder)
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    assert TextModel.load(folder).ends == expected


@pytest.mark.parametrize(("said", "begin"), [({"bos_token_id": 9}, [9]), ({}, [256])])
def test_what_an_empty_prompt_begins_with(tmp_path, said, begin):
    folder = saved(tmp_path / "model", 300, **said)
    Tokenizer.bytes().save(folder)
    assert TextModel.load(folder).prompt("") == begin
    assert TextModel.load(folder).prompt("a") == [97]


def test_what_a_tokenizer_sets_before_a_text_is_before_a_prompt_too(tmp_path):
    folder = saved(tmp_path / "model", 8)
    in_words().save(folder)
    model = TextModel.load(folder)
    assert model.prompt("a b") == [0, 2, 3]
    assert model.prompt("") == [0]
    assert model.ends == {1}


def test_spaces_between_words_are_kept():
    tokenizer = in_words()
    text = Unfolding(tokenizer, [0, 2])
    assert [text.add(token) for token in (3, 4, 2, 5, 5)] == [" b", "c", " a", " ", " "]
    alone = Unfolding(tokenizer, [0])
    assert [alone.add(token) for token in (2, 3)] == ["a", " b"]


def test_a_word_that_follows_a_prompt_keeps_its_space():
    """A model that says b after everything."""
    decoder = Decoder.of({"model_type": "gpt2", "vocab_size": 8, **SIZES})
    with torch.no_grad():
        decoder.norm.weight.zero_()
        decoder.norm.bias.fill_(1)
        decoder.embedding.weight.copy_(torch.arange(8).eq(3)[:, None].expand(8, 32))
    assert written(TextModel(decoder, in_words(), (0,), frozenset()), ["a", ""], tokens=2)[0].text == " b b"


def with_bytes_to_fall_back_to():
    """In the manner of Llama 2's: characters that the vocabulary lacks are written byte by byte."""
    words = ["<unk>", "▁", "a", "▁a", *(f"<0x{byte:02X}>" for byte in range(256))]
    ids = {word: place for place, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(ids, [("▁", "a")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    )
    d = tokenizers.decoders
    tokenizer.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    return Tokenizer(tokenizer)


def in_pieces(tokenizer, ids):
    """The text of ids after a prompt, as it comes; what has not come whole is not shown."""
    text = Unfolding(tokenizer, tokenizer.encode("a"))
    pieces = [text.add(token) for token in ids]
    assert all(not piece.endswith("�") for piece in pieces)
    return "".join([*pieces, text.rest()])


@pytest.mark.parametrize("tokenizer", [Tokenizer.bytes(), Tokenizer.trained(["né ✓ a a"], 270), in_words()])
@given(data=st.data())
def test_the_pieces_are_the_text_of_all_tokens(tokenizer, data):
    """Of any tokens, those of broken characters too."""
    token = st.integers(0, tokenizer.size - 1) | st.sampled_from(tokenizer.encode("é ✓ a"))
    ids = data.draw(st.lists(token, max_size=12))
    assert "a" + in_pieces(tokenizer, ids) == tokenizer.decode(tokenizer.encode("a") + ids)


@given(text=st.text(st.sampled_from("a é✓𝄞"), max_size=12))
def test_characters_that_are_written_byte_by_byte_come_whole(text):
    tokenizer = with_bytes_to_fall_back_to()
    whole = tokenizer.encode("a" + text)
    assert in_pieces(tokenizer, whole[1:]) == text


def test_bytes_for_an_embedding_without_a_row_for_the_end(tmp_path):
    folder = saved(tmp_path / "model", 256)
    model = TextModel.load(folder, tokenizer="bytes")
    assert (model.prompt("é"), model.ends) == ([0xC3, 0xA9], frozenset())
    with pytest.raises(BadInput, match="the prompt is empty"):
        model.write([""])


def test_a_tokenizer_from_elsewhere_has_its_own_end(tmp_path):
    folder = saved(tmp_path / "model", 300, eos_token_id=7)
    other = Tokenizer.trained(["hello world " * 9], 264)
    (tmp_path / "other").mkdir()
    other.save(tmp_path / "other")
    model = TextModel.load(folder, tokenizer=tmp_path / "other")
    assert model.ends == {other.end}
    assert model.prompt("hello") == other.encode("hello")


def test_rows_beyond_the_tokenizer_are_never_written(tmp_path):
    """All rows but those of the end and of padding are equally improbable."""
    decoder = Decoder.of("gpt2", vocab_size=300, **SIZES)
    with torch.no_grad():
        decoder.embedding.weight[:257] = 0
    save_pretrained(decoder, tmp_path / "model")
    Tokenizer.bytes().save(tmp_path / "model")
    model = TextModel.load(tmp_path / "model")
    assert max(generate(model.decoder, [[97]], tokens=9)[0]) > 256
    assert written(model, ["a"], tokens=9)[0].text == "\0" * 9


@pytest.mark.parametrize("files", ["tokenizer.json", "vocab.json"])
def test_a_tokenizer_with_more_entries_than_rows_is_refused(tmp_path, files):
    folder = saved(tmp_path / "model", 3)
    if files == "tokenizer.json":
        Tokenizer.bytes().save(folder)
    else:
        (folder / files).write_text(json.dumps({"h": 0, "e": 1, "he": 2, END: 3}))
        (folder / "merges.txt").write_text("h e\n")
    with pytest.raises(
        BadInput, match=r"end at (256|3), but the embedding .*has 3 rows: it is another model's tokenizer"
    ):
        TextModel.load(folder)


def test_a_checkpoint_without_a_tokenizer_says_what_to_do(tmp_path):
    with pytest.raises(BadInput, match="use --tokenizer bytes or a path"):
        TextModel.load(saved(tmp_path / "model", 300))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"eos_token_id": "x"}, "eos_token_id is the string 'x', expected an id or a list of ids"),
        ({"bos_token_id": [True]}, "bos_token_id is"),
        ([], "expected an object"),
    ],
)
def test_an_odd_generation_config_is_refused(folder, tmp_path, said, message):
    copy = saved(tmp_path / "model", 257)
    Tokenizer.bytes().save(copy)
    (copy / "generation_config.json").write_text(json.dumps(said))
    with pytest.raises(BadInput, match=message):
        TextModel.load(copy)


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(folder, device):
    with pytest.raises(BadInput, match=f"device '{device}' cannot be used"):
        TextModel.load(folder, device=device)
