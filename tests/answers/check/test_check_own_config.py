"""The config that a text states is its model, and a pasted dictionary is a config."""

import pytest

import tallystick

CONFIG = """\
We take this one:
SMALL = {
    "vocab_size": 50257,     # entries
    "context_length": 1024,
    "emb_dim": 768,
    "n_heads": 12,
    "n_layers": 12,
    "drop_rate": 0.1,
    "qkv_bias": False        # none on queries, keys and values
}
and could have taken
LARGE = {"vocab_size": 50257, "context_length": 1024, "emb_dim": 1600, "n_heads": 25, "n_layers": 48, "qkv_bias": False}
or, of another kind,
OTHER = {
    "vocab_size": 32000, "context_length": 4096, "emb_dim": 4096, "n_heads": 32, "n_layers": 32,
    "hidden_dim": 11008, "dtype": torch.bfloat16  # half the memory
}
"""
COUNT = "\nToken embedding: 50257 × 768 = 38,597,376\n"


def test_the_model_is_the_one_whose_config_the_text_states():
    answer = tallystick.check(CONFIG + COUNT)
    assert answer.against == "SMALL (line 2 of the text)"
    untied, biases, norms = 2 * 50257 * 768 + 1024 * 768, 12 * (768 + 5 * 768), 25 * 2 * 768
    assert answer.total_true == untied + 12 * 12 * 768**2 + biases + norms
    assert tallystick.check(CONFIG + COUNT, against="gpt2").against == "gpt2"


def test_a_dictionary_of_something_else_is_no_config():
    answer = tallystick.check("Scores: {'gpt2': 3, 'other': 4}\n\n2 × 3 = 6")
    assert (answer.against, answer.correct) == (None, True)


BOOK = """\
GPT_CONFIG_124M = {
    "vocab_size": 50257,    # Vocabulary size
    "context_length": 1024, # Context length
    "emb_dim": 768, "n_heads": 12, "n_layers": 12, 'drop_rate': .1,
    "dtype": torch.bfloat16,
    "qkv_bias": False       # Query-key-value bias {as in the paper}
}
"""


@pytest.mark.parametrize("name", ["book.py", "book.txt", "book.json"])
def test_a_pasted_dictionary_is_a_config(tmp_path, name):
    (tmp_path / name).write_text(BOOK, encoding="utf-8")
    ledger = tallystick.count(tmp_path / name)
    assert (ledger.total, ledger.architecture) == (163_009_536, "book_gpt")
    assert {entry.dtype for entry in ledger.rolled if not entry.buffer} == {"bfloat16"}


def test_a_dictionary_of_a_module_is_a_config(tmp_path, monkeypatch):
    (tmp_path / "configs_of_a_book.py").write_text(
        "GPT = " + BOOK.partition("= ")[2].replace("torch.bfloat16", "'bfloat16'")
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert tallystick.count("configs_of_a_book:GPT").total == 163_009_536
    assert tallystick.count("configs_of_a_book:GPT", n_layers=1).total < 100_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOOK + BOOK, "holds 2 dictionaries (GPT_CONFIG_124M on line 1, GPT_CONFIG_124M on line 8)"),
        ("x = {'emb_dim': open('/etc/passwd')}", "is not JSON"),
        ("{" * 100_000, "nested too deeply|is not JSON"),
        ("print('hello')", "is not JSON"),
        ("x = {1: 2}", "is not JSON"),
    ],
)
def test_what_is_no_one_config_is_refused(tmp_path, text, words):
    (tmp_path / "some.py").write_text(text, encoding="utf-8")
    with pytest.raises(tallystick.BadInput, match=words.replace("(", r"\(").replace(")", r"\)")):
        tallystick.count(tmp_path / "some.py")


def test_what_python_warns_about_is_not_printed(recwarn):
    """The compiler calls `12if` an invalid decimal literal, and prints that."""
    tallystick.check('config = {"n_layer": 12if True else 3, "n_embd": 768}\n50257 × 768 = 38,597,376\n')
    assert list(recwarn) == []
