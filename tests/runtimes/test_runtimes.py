"""What a model is, and how it is run, are two things: a runtime is given to the answers, and holds
none of the architecture.
"""

import tallystick
from repository import ROOT
from tallystick import architectures
from tallystick.answers.compute.compute import compute
from tallystick.answers.memory.memory import memory
from tallystick.architectures.aliases import ALIASES
from tallystick.core.anatomy import Heads
from tallystick.runtimes.transformers import TRANSFORMERS
from tallystick.runtimes.transformers.traits import TRAITS, USUAL, AttentionTraits, traits_of

BLOCK = 16  # tokens of a block, as vLLM has them by default


class Paged:
    """A runtime whose cache grows by blocks of tokens, and that saves nothing: enough of one to be
    told apart.
    """

    name, release = "paged", "test"

    def running(self, model_type, values):
        return PagedModel(TRANSFORMERS.running(model_type, values))


class PagedModel:
    def __init__(self, eager):
        self.eager = eager

    def cached(self, attending, sequence):
        return tuple(
            one._replace(positions=-(-one.positions // BLOCK) * BLOCK) for one in self.eager.cached(attending, sequence)
        )

    def carried(self, recurring):
        return self.eager.carried(recurring)

    def saved(self, parts, load, *, learned):
        yield "everything", 1, 1000

    def recomputed(self, parts, load):
        return 0, 0

    def alive(self, parts, load):
        return 7, "its only buffer"

    def pairs(self, heads, window, sequence):
        return sequence * (sequence + 1) // 2


def lines_of(answer, part):
    return [(line.what, line.bytes) for line in answer.lines if line.part == part]


def test_the_cache_is_that_of_the_runtime():
    ledger = tallystick.count("gpt2")
    of_one_token = 2 * 12 * 768 * 4  # keys and values in float32
    for runtime, tokens in ((TRANSFORMERS, 17), (Paged(), 32)):
        found = memory(ledger, sequence=17, runtime=runtime).to_dict()
        assert found["kv_cache_bytes"] == tokens * of_one_token
    assert lines_of(memory(ledger, sequence=17, runtime=Paged()), "activations") == [
        ("peak activations (its only buffer, one layer)", 7)
    ]


def test_what_training_saves_is_that_of_the_runtime():
    answer = memory(tallystick.count("gpt2"), sequence=17, mode="training", runtime=Paged())
    assert lines_of(answer, "activations") == [("everything", 1000)]


def test_the_products_are_those_of_the_runtime():
    ledger = tallystick.count("gpt2")
    for runtime, pairs in ((TRANSFORMERS, 16), (Paged(), 10)):
        answer = compute(ledger, sequence=4, runtime=runtime)
        assert answer.parts["attention_scores"]["forward_flops"] == 2 * 12 * 12 * pairs * 64
        assert answer.parts["attention_scores"]["training_flops"] == 3 * 2 * 12 * 12 * pairs * 64
        assert answer.parts["attention_scores"]["needed_flops"] == 2 * 12 * 12 * 10 * 64


def test_a_rank_runs_as_the_whole_model_does():
    """The parts of a stage no longer say which type they are of: Bloom's code calls no fused
    kernel, on any of them.
    """
    ledger = tallystick.count("bloom-560m")
    whole, stage = (memory(ledger, sequence=64, mode="training", pp=pp) for pp in (1, 2))
    assert any(what == "attention probabilities" for what, _ in lines_of(whole, "activations"))
    assert any(what == "attention probabilities" for what, _ in lines_of(stage, "activations"))


def test_the_facts_are_of_the_release_that_the_tests_measure():
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"\ntransformers=={TRANSFORMERS.release}." in pinned


def test_an_architecture_does_not_say_how_it_is_run():
    assert not set(AttentionTraits._fields) & set(Heads._fields)


def test_each_row_is_of_a_native_type_and_says_something():
    assert set(TRAITS) <= set(architectures.known())
    assert USUAL not in TRAITS.values()
    assert list(TRAITS) == sorted(TRAITS)


def test_an_alias_runs_as_its_family():
    for name, alias in ALIASES.items():
        values = architectures.find(alias.like).keys
        assert traits_of(name, values) == traits_of(alias.like, values)
