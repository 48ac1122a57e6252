"""The public functions take a source, a part and overrides alike."""

import inspect

import pytest

import tallystick
from tallystick.answers.compute.compute import compute
from tallystick.answers.memory.memory import memory

# GPT-2 with two layers: both embeddings, two layers of 7,087,872, the last norm.
TWO_LAYERS = 50257 * 768 + 1024 * 768 + 2 * 7_087_872 + 2 * 768
QUESTIONS = {
    "count": (tallystick.count, lambda answer: answer.total, TWO_LAYERS),
    "formula": (tallystick.formula, lambda answer: answer.value, TWO_LAYERS),
    "reconcile": (lambda *a, **k: tallystick.reconcile(*a, 163, **k), lambda answer: answer.actual, TWO_LAYERS),
    "compare": (lambda *a, **k: tallystick.compare("gpt2", *a, **k), lambda answer: answer.total_b, TWO_LAYERS),
    "check": (lambda *a, **k: tallystick.check("1 + 1 = 2", *a, **k), lambda answer: answer.total_true, TWO_LAYERS),
    "memory": (tallystick.memory, lambda answer: answer.weights_bytes, 4 * TWO_LAYERS),
    "fit": (lambda *a, **k: tallystick.fit(*a, "8GB", **k), lambda answer: answer.asked.weights_bytes, 4 * TWO_LAYERS),
    "serve": (
        lambda *a, **k: tallystick.serve(*a, engine="vllm", device="8GB", dtype="float32", **k),
        lambda answer: answer.weights_bytes,
        4 * (TWO_LAYERS + 47 * 768),  # rows of the vocabulary are padded to a multiple of 64
    ),
    # Twice the matrices of two layers and of the head; then scores and values of one token.
    "compute": (
        lambda *a, **k: tallystick.compute(*a, sequence=1, **k),
        lambda answer: answer.forward_flops,
        2 * (2 * 12 * 768**2 + 50257 * 768) + 2 * 2 * 2 * 768,
    ),
    "ties": (tallystick.ties, lambda answer: answer.groups[0].parameters, 50257 * 768),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_config_keys_are_overridden(name):
    ask, read, expected = QUESTIONS[name]
    assert read(ask("gpt2", n_layer=2)) == expected
    assert read(ask(tallystick.count("gpt2", n_layer=2))) == expected


@pytest.mark.parametrize("name", sorted(set(QUESTIONS) - {"compare"}))
def test_a_ledger_cannot_be_changed(name):
    ask, _, _ = QUESTIONS[name]
    for changed in ({"n_layer": 2}, {"part": "text"}):
        with pytest.raises(
            tallystick.BadInput, match=rf"{name}\(\): a Ledger is counted already: {next(iter(changed))}"
        ):
            ask(tallystick.count("gpt2"), **changed)


def test_overrides_are_for_the_model_of_a_comparison_that_is_not_counted_yet():
    ledger = tallystick.count("gpt2")
    assert tallystick.compare(ledger, "gpt2", n_layer=2).gap == TWO_LAYERS - ledger.total
    assert tallystick.compare("gpt2", ledger, n_layer=2).gap == ledger.total - TWO_LAYERS
    with pytest.raises(tallystick.BadInput, match=r"compare\(\): a Ledger is counted already: n_layer cannot"):
        tallystick.compare(ledger, ledger, n_layer=2)


def test_overrides_without_a_model_to_check_against_are_refused():
    with pytest.raises(tallystick.BadInput, match=r"check\(\): n_layer changes the model of `against`, and none"):
        tallystick.check("1 + 1 = 2", n_layer=2)


# A vision tower next to a GPT-2-like language model, by its config alone.
TEXT = {"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 32}  # fmt: skip
LLAVA = {"model_type": "llava", "text_config": TEXT, "vision_config": {"model_type": "clip_vision_model"}}
LANGUAGE = 2 * 32 * 8 + 4 * 8 * 8 + 3 * 8 * 16 + 3 * 8


@pytest.mark.parametrize("name", sorted(set(QUESTIONS) - {"compare", "ties", "compute", "serve"}))
def test_part_is_the_language_model(name):
    ask, read, _ = QUESTIONS[name]
    bytes_each = 4 if name in ("memory", "fit") else 1
    assert read(ask(LLAVA, part="text")) == LANGUAGE * bytes_each


def test_part_is_of_both_models_compared():
    assert tallystick.compare(LLAVA, LLAVA, part="text").total_a == LANGUAGE


def test_part_is_of_ties_too():
    tied = {**LLAVA, "text_config": {**TEXT, "tie_word_embeddings": True}, "tie_word_embeddings": True}
    assert tallystick.ties(tied, part="text").groups[0].parameters == 32 * 8


def options_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


@pytest.mark.parametrize(("public", "answer"), [("memory", memory), ("fit", memory), ("compute", compute)])
def test_each_option_of_an_answer_is_one_of_the_public_function(public, answer):
    ours = options_of(getattr(tallystick, public)) | {"runtime": options_of(answer)["runtime"]}
    theirs = options_of(answer) | {"part": None, "real": False}
    if public == "fit":
        del theirs["device"]  # which it requires
    assert ours == theirs


def test_one_target_may_be_a_word():
    asked = {"mode": "training", "lora": 4}
    assert tallystick.memory("gpt2", **asked, targets="c_attn") == tallystick.memory(
        "gpt2", **asked, targets=["c_attn"]
    )
