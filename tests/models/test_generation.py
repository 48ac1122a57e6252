"""Generation beside transformers: the same greedy tokens, the same filters; seeds, stops and
batches.
"""

from functools import partial

import pytest
import torch
from transformers.generation import logits_process

from decoders import KINDS, VOCABULARY, ours, theirs
from rotating import some_by_commit
from tallystick.errors import BadInput
from tallystick.models import generation, sampling
from tallystick.models.generation import Unfolding, generate, stream
from tallystick.models.sampling import Sampling
from tallystick.models.tokens import Tokenizer

PROMPTS = [[5, 9, 11, 3, 60], [7], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]]


@pytest.fixture(scope="module")
def decoder():
    return ours(theirs("llama", **KINDS["llama"]))


FAR = some_by_commit([*KINDS], 3)


@pytest.mark.parametrize("kind", KINDS)
def test_many_greedy_tokens_are_those_of_transformers(kind):
    tokens = 200 if kind in FAR else 50
    room = "n_positions" if kind == "gpt2" else "max_position_embeddings"
    model = theirs(kind, **{**KINDS[kind], room: 256})
    model.generation_config.eos_token_id = None
    expected = model.generate(torch.tensor(PROMPTS[:1]), max_new_tokens=tokens, do_sample=False, pad_token_id=0)
    decoder = ours(model)
    assert generate(decoder, PROMPTS[:1], tokens=tokens) == [expected[0, 5:].tolist()]
    with torch.no_grad():  # without a cache: at each place the most likely token is the next
        assert torch.equal(decoder(expected[:, :-1])[:, 4:].argmax(-1), expected[:, 5:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_unequal_prompts_gives_each_what_it_gets_alone(kind):
    decoder = ours(theirs(kind, **KINDS[kind]))
    alone = [generate(decoder, [prompt], tokens=20)[0] for prompt in PROMPTS]
    assert generate(decoder, PROMPTS, tokens=20) == alone


@pytest.mark.parametrize("kind", KINDS)
def test_in_shapes_that_never_change_the_tokens_are_the_same(kind, monkeypatch):
    """The step that is compiled, as it stands: with rooms that are not full, that roll, and behind
    padding.
    """
    decoder = ours(theirs(kind, **KINDS[kind]))
    step = partial(generation._step)  # another object, as the compiled one is
    monkeypatch.setattr(generation, "_compiled_step", lambda device: step)
    for prompts in (PROMPTS[:1], PROMPTS):
        assert generate(decoder, prompts, tokens=30, compiled=True) == generate(decoder, prompts, tokens=30)


def test_without_a_compiler_it_is_said(decoder, monkeypatch):
    generation._compiled_step.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BadInput, match=r"a C\+\+ compiler, but no-such-compiler was not found"):
        generate(decoder, PROMPTS, tokens=2, compiled=True)


def test_the_filters_are_those_of_transformers():
    torch.manual_seed(0)
    logits = 3 * torch.randn(4, VOCABULARY)
    ids = torch.randint(VOCABULARY, (4, 9))
    seen = torch.zeros(4, VOCABULARY, dtype=torch.bool).scatter_(1, ids, True)
    for count in (1, 5, VOCABULARY + 1):
        assert torch.equal(sampling.top_k(logits, count), logits_process.TopKLogitsWarper(count)(ids, logits))
    for share in (1e-30, 0.1, 0.5, 0.9):
        assert torch.equal(sampling.top_p(logits, share), logits_process.TopPLogitsWarper(share)(ids, logits))
        assert torch.equal(sampling.min_p(logits, share), logits_process.MinPLogitsWarper(share)(ids, logits))
    for penalty in (0.8, 1.3):
        expected = logits_process.RepetitionPenaltyLogitsProcessor(penalty)(ids, logits.clone())
        assert torch.equal(sampling.penalised(logits, seen, penalty), expected)


def test_a_seed_gives_the_same_tokens_and_another_does_not(decoder):
    warm = Sampling(temperature=1.0)
    first, again, other = (generate(decoder, PROMPTS, tokens=20, sampling=warm, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_draws_follow_the_distribution(decoder):
    """The frequencies of 4,000 draws beside the probabilities that the logits give."""
    with torch.no_grad():
        wanted = decoder(torch.tensor([PROMPTS[0]]))[0, -1].softmax(-1)
    drawn = generate(decoder, PROMPTS[:1] * 4000, tokens=1, sampling=Sampling(temperature=1.0), seed=0)
    found = torch.bincount(torch.tensor(drawn)[:, 0], minlength=VOCABULARY) / 4000
    assert (found - wanted).abs().max() < 0.03


def test_padded_rows_are_never_chosen(decoder):
    """The most probable token is taken for padding, with all after it."""
    favourite = generate(decoder, PROMPTS[:1], tokens=1)[0][0]
    drawn = generate(
        decoder, PROMPTS[:1] * 500, tokens=1, sampling=Sampling(temperature=5.0), seed=0, vocabulary=favourite
    )
    assert max(row[0] for row in drawn) < favourite


def test_a_stop_token_ends_its_sequence_alone(decoder):
    free = generate(decoder, PROMPTS, tokens=20)
    end = free[0][6]
    stopped = generate(decoder, PROMPTS, tokens=20, stop=[end])
    for row, whole in zip(stopped, free, strict=True):
        assert row == (whole[: whole.index(end)] if end in whole else whole)
    assert len(stopped[0]) <= 6


def test_the_stream_gives_a_step_at_a_time_and_ends_with_the_last_sequence(decoder):
    end = generate(decoder, PROMPTS[:1], tokens=3)[0][2]
    steps = list(stream(decoder, PROMPTS[:1], tokens=50, stop=[end]))
    assert steps[-1] == [None]
    assert len(steps) <= 3


def test_the_decoder_is_left_in_the_mode_it_was_in(decoder):
    decoder.train()
    generate(decoder, PROMPTS, tokens=1)
    assert decoder.training
    decoder.eval()


@pytest.mark.parametrize("pieces", [["STOP"], ["S", "T", "O", "P"], ["xST", "OP and more"]])
def test_a_stop_string_is_found_across_tokens(pieces):
    text = Unfolding(Tokenizer.bytes(), stop=["STOP"])
    shown = "".join(text.add(byte) for piece in pieces for byte in piece.encode())
    assert shown == "".join(pieces).partition("STOP")[0]
    assert text.stopped
    assert text.rest() == ""


def test_what_only_began_like_a_stop_is_shown_at_the_end():
    text = Unfolding(Tokenizer.bytes(), stop=["STOP"])
    assert "".join(text.add(byte) for byte in b"a ST") == "a "
    assert text.rest() == "ST"


def test_the_longest_beginning_of_any_stop_is_held_back():
    text = Unfolding(Tokenizer.bytes(), stop=["\n\nQ:", "\nA"])
    assert [text.add(byte) for byte in b"a\n\nB"] == ["a", "", "", "\n\nB"]


def test_bytes_that_are_no_character_are_shown_once_a_character_follows():
    text = Unfolding(Tokenizer.bytes())
    assert [text.add(byte) for byte in b"\xffa\xc3"] == ["", "�a", ""]
    assert text.rest() == "�"


def test_characters_wait_for_all_of_their_bytes():
    text = Unfolding(Tokenizer.bytes())
    assert [text.add(byte) for byte in "é✓".encode()] == ["", "é", "", "", "✓"]


@pytest.mark.parametrize(
    ("prompts", "tokens", "message"),
    [
        ([], 1, "there is no prompt"),
        ([[]], 1, "the prompt is empty"),
        ([[1], []], 1, "prompt 2 is empty"),
        ([[1, VOCABULARY]], 1, f"the id {VOCABULARY}, but the embedding has rows for 0 to {VOCABULARY - 1}"),
        ([[1] * 2049], 1, "2,049 tokens, more than the model's 2,048 positions"),
        ([[1] * 2000], 50, "at most 49 tokens can follow, not 50"),
        ([[1]], 0, "tokens is 0"),
    ],
)
def test_prompts_that_cannot_be_read_are_refused(decoder, prompts, tokens, message):
    with pytest.raises(BadInput, match=message):
        generate(decoder, prompts, tokens=tokens)


@pytest.mark.parametrize(
    "odd", [{"temperature": 1e-30}, {"temperature": 1e-320}, {"temperature": 1.0, "top_p": 1e-320}]
)
def test_a_draw_from_next_to_nothing_is_the_most_probable_token(decoder, odd):
    assert generate(decoder, PROMPTS, tokens=5, sampling=Sampling(**odd), seed=0) == generate(
        decoder, PROMPTS, tokens=5
    )


@pytest.mark.parametrize("penalty", [0.001, 1000])
def test_the_strongest_penalties_leave_something_to_draw(decoder, penalty):
    sampling = Sampling(temperature=1.0, repetition_penalty=penalty)
    assert [len(row) for row in generate(decoder, PROMPTS, tokens=50, sampling=sampling, seed=0)] == [50] * 3


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_that_torch_does_not_take_is_refused(decoder, seed):
    with pytest.raises(BadInput, match="seed is"):
        generate(decoder, PROMPTS, tokens=1, seed=seed)


def test_logits_that_are_no_numbers_are_said():
    broken = ours(theirs("llama", **KINDS["llama"]))
    torch.nn.init.constant_(broken.norm.weight, torch.nan)
    with pytest.raises(BadInput, match="are NaN"):
        generate(broken, PROMPTS, tokens=1)


@pytest.mark.parametrize(
    "odd",
    [
        {"temperature": -1.0},
        {"top_k": 0},
        {"top_p": 1.5},
        {"min_p": 0.0},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": 1e30},
    ],
)
def test_odd_ways_to_choose_are_refused(odd):
    with pytest.raises(BadInput, match="expected"):
        Sampling(**odd)
