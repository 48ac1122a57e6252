"""`tallystick generate` and `tallystick evaluate` as their users meet them."""

import json
import math
import sys

import pytest
import torch

from tallystick.cli.main import main
from tallystick.models import Decoder, save_pretrained
from tallystick.models.tokens import Tokenizer

TEXT = "né ✓."  # no byte comes twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that says TEXT again and again, begun by the token that ends a text: each byte calls
    for the next.
    """
    folder = tmp_path_factory.mktemp("said") / "model"
    whole = TEXT.encode()
    decoder = Decoder.of(
        {"model_type": "llama", "vocab_size": 300, "hidden_size": 300, "intermediate_size": 4, "num_hidden_layers": 1}
        | {"num_attention_heads": 1, "max_position_embeddings": 64}
    )
    with torch.no_grad():
        for parameter in decoder.layers.parameters():
            parameter.zero_()  # nothing is added to the embedding
        decoder.embedding.weight.copy_(torch.eye(300))
        decoder.head.weight.zero_()
        decoder.head.weight[ord("!")] = 0.1  # the second choice, always
        for before, after in zip([256, *whole], [*whole, whole[0]], strict=True):
            decoder.head.weight[after, before] = 0.4
    save_pretrained(decoder, folder)
    Tokenizer.bytes().save(folder)
    return folder


def call(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_prompt_is_printed_and_gone_on_from(folder, capsys):
    code, out, err = call(capsys, "generate", folder, "--prompt", "n", "--tokens", "11")
    assert (code, out) == (0, "né ✓.né \n")
    assert err.startswith("11 tokens in ")
    assert err.endswith(" a second\n")


def test_text_is_sent_as_it_comes(folder, monkeypatch):
    sent = []
    monkeypatch.setattr(sys.stdout, "write", sent.append)
    main(["generate", str(folder), "--prompt", "n", "--tokens", "7"])
    assert [piece for piece in sent if piece] == ["n", "é", " ", "✓", ".", "\n"]


def test_without_a_prompt_it_begins_as_a_text_does(folder, capsys):
    _, out, _ = call(capsys, "generate", folder, "--tokens", "8")
    assert out == "né ✓.\n"


def test_a_stop_ends_the_text(folder, capsys):
    _, out, err = call(capsys, "generate", folder, "--prompt", "n", "--stop", ".n")
    assert out == "né ✓\n"
    assert err.startswith("8 tokens in ")


def test_several_prompts_as_json(folder, capsys):
    arguments = ("--prompt", "n", "--prompt", "né ✓", "--tokens", "3", "--format", "json")
    code, out, err = call(capsys, "generate", folder, *arguments)
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["texts"] == [
        {"prompt": "n", "text": "é ", "tokens": 3, "ended": "length"},
        {"prompt": "né ✓", "text": ".n�", "tokens": 3, "ended": "length"},
    ]
    assert (answer["source"], answer["seed"], answer["read"], answer["written"]) == (str(folder), None, 8, 6)
    assert answer["tokens_per_second"] == pytest.approx(6 / answer["seconds"])


def test_several_prompts_as_text(folder, capsys):
    _, out, _ = call(capsys, "generate", folder, "--prompt", "n", "--prompt", "✓", "--tokens", "2")
    assert out == "né\n\n✓.n\n"


def test_a_seed_that_was_said_gives_the_text_again(folder, capsys):
    arguments = ("generate", folder, "--prompt", "n", "--temperature", "1.5", "--tokens", "40")
    _, first, err = call(capsys, *arguments)
    seed = err.strip().rpartition(" ")[2]
    _, again, _ = call(capsys, *arguments, "--seed", seed)
    _, other, _ = call(capsys, *arguments, "--seed", int(seed) + 1)
    assert first == again != other


@pytest.mark.parametrize("option", [("--top-k", "200"), ("--top-p", "0.9"), ("--min-p", "0.01"), ("--seed", "1")])
def test_what_only_a_draw_can_heed_draws(folder, capsys, option):
    assert ", seed " in call(capsys, "generate", folder, "--tokens", "1", *option)[2]


def test_without_a_draw_there_is_no_seed(folder, capsys):
    _, _, err = call(capsys, "generate", folder, "--tokens", "1", "--top-k", "5", "--temperature", "0")
    assert "seed" not in err


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (("--top-k", "1"), "né ✓.n\n"),
        (("--top-p", "0.1"), "né ✓.n\n"),
        (("--min-p", "1"), "né ✓.n\n"),
        (("--temperature", "0.001"), "né ✓.n\n"),
        (("--repetition-penalty", "9"), "né ✓.!\n"),
    ],
)
def test_every_way_to_choose_is_heeded(folder, capsys, option, text):
    assert call(capsys, "generate", folder, "--prompt", "n", "--tokens", 8, *option)[1] == text


def test_a_terminal_is_not_sent_what_it_would_obey(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert call(capsys, "generate", folder, "--prompt", "\x1b[2Jn", "--tokens", "2")[1] == "�[2Jné\n"


def test_another_dtype_and_tokenizer(folder, capsys):
    options = ("--dtype", "bfloat16", "--tokenizer", "bytes", "--device", "cpu", "--tokens", "4")
    assert call(capsys, "generate", folder, "--prompt", "n", *options)[1] == "né �\n"


def test_a_text_is_scored(folder, tmp_path, capsys):
    """The norm makes √300 of the one that stands in 300 places, and the head takes its share of
    that.
    """
    (tmp_path / "text.txt").write_text(TEXT * 9, encoding="utf-8")
    wanted, second = 0.4 * math.sqrt(300), 0.1 * math.sqrt(300)
    loss = math.log(math.exp(wanted) + math.exp(second) + 298) - wanted
    code, out, err = call(capsys, "evaluate", folder, tmp_path / "text.txt", "--format", "json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["loss"] == pytest.approx(loss, rel=1e-3)
    assert answer["bits_per_byte"] == pytest.approx(loss / math.log(2), rel=1e-3)
    assert answer["perplexity"] == pytest.approx(math.exp(loss), rel=1e-3)
    assert (answer["tokens"], answer["bytes"]) == (9 * len(TEXT.encode()) - 1,) * 2
    assert (answer["context"], answer["stride"]) == (64, 32)
    assert (answer["source"], answer["file"]) == (str(folder), str(tmp_path / "text.txt"))


def test_a_score_as_a_table(folder, tmp_path, capsys):
    (tmp_path / "text.txt").write_bytes(TEXT.encode() + b"\xff")
    _, out, err = call(capsys, "evaluate", folder, tmp_path / "text.txt", "--context", "8", "--stride", "2")
    assert err == ""
    assert "text.txt: perplexity " in out
    assert "8 tokens scored (8 bytes)" in out
    assert "of 8 tokens, with a stride of 2" in out


def test_a_terminal_is_shown_how_far_it_is(folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "text.txt").write_text(TEXT * 9, encoding="utf-8")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    code, out, err = call(capsys, "evaluate", folder, tmp_path / "text.txt", "--format", "json")
    assert code == 0
    assert json.loads(out)
    assert "scoring" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--prompt", "n", "--tokens", "65"), "at most 64 tokens can follow, not 65"),
        (("--prompt", "n" * 65), "65 tokens, more than the model's 64 positions"),
        (("--temperature", "-1"), "temperature is -1.0"),
        (("--top-p", "1.1"), "top-p is 1.1"),
        (("--top-k", "0"), "top-k is 0"),
        (("--seed", "-1"), "seed is -1"),
        (("--tokens", "x"), "invalid int value: 'x'"),
        (("--tokenizer", "nowhere"), "nowhere holds no tokenizer"),
        (("--dtype", "int7"), "dtype is 'int7'"),
        (("--dtype", "float8_e4m3fn"), "torch.float8_e4m3fn is too narrow to compute in: use"),
        (("--device", "meta"), "device 'meta' cannot be used"),
        (("--prompt", "n\udcff"), "'n\\udcff' is not text: character 2 is a byte that is not UTF-8"),
        (("--device", "nonsense"), "device 'nonsense' cannot be used"),
    ],
)
def test_what_cannot_be_generated_is_said_in_one_line(folder, capsys, arguments, message):
    code, out, err = call(capsys, "generate", folder, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"", (), "text.txt is empty"),
        (b"n", (), "the text has 1 tokens"),
        (b"text", ("--stride", "65"), "stride is 65, expected 1 to 64"),
        (b"text", ("--context", "0"), "context is 0, expected 1 to 64"),
        (None, (), "text.txt: No such file or directory"),
    ],
)
def test_what_cannot_be_scored_is_said_in_one_line(folder, tmp_path, capsys, content, arguments, message):
    if content is not None:
        (tmp_path / "text.txt").write_bytes(content)
    code, out, err = call(capsys, "evaluate", folder, tmp_path / "text.txt", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_weights_that_are_no_numbers_end_it_in_one_line(tmp_path, capsys):
    decoder = Decoder.of("gpt2", vocab_size=257, n_embd=8, n_layer=1, n_head=2, n_positions=16)
    torch.nn.init.constant_(decoder.norm.weight, torch.nan)
    save_pretrained(decoder, tmp_path / "model")
    Tokenizer.bytes().save(tmp_path / "model")
    code, _, err = call(capsys, "generate", tmp_path / "model", "--prompt", "n")
    assert (code, err.count("\n")) == (2, 1)
    assert "the logits are NaN" in err
