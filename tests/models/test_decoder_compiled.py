"""A compiled decoder: one graph, the same logits and gradients, no warning, and the head still the
embedding; in training too.

Generated code costs 30 to 60 seconds of CPU a case on a fresh machine. So one of three commits
generates it, for one case of all the tests here. The others are traced as for it: into inductor's
operations, forward and backward apart.
"""

from __future__ import annotations

import warnings
from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters

from decoders import KINDS, VOCABULARY
from rotating import one_by_commit, some_by_commit, taken_by_commit
from tallystick.models import Decoder, generation
from tallystick.training.run import prepared
from training import small

pytestmark = pytest.mark.xdist_group("compiled")  # PyTorch's headers are compiled once

NO_DROPOUT = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 6, "long_factor": [2.0] * 6}
# Two layers: where a kind's layers differ, one of each.
SHALLOW = {
    kind: {"model_type": kind, **values, "n_layer" if "n_layer" in values else "num_hidden_layers": 2}
    for kind, values in KINDS.items()
}
WHOLE = {
    **SHALLOW,
    "palm": {"model_type": "palm", "vocab_size": VOCABULARY, "d_model": 48, "n_layers": 2, "n_heads": 3, "head_dim": 8},
    "dynamic": {**SHALLOW["llama"], "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "longrope": {**SHALLOW["phi3"], "rope_scaling": LONGROPE},
}
# Rows of 16 bytes, so that experts can be grouped.
SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 97,
}
COMPILED = {
    "gpt2": {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 97, **NO_DROPOUT},
    "gemma2": {"model_type": "gemma2", **SMALL, "num_hidden_layers": 1, "head_dim": 8, "sliding_window": 7},
    "mixtral": {"model_type": "mixtral", **SMALL, "num_hidden_layers": 1, "num_local_experts": 4},
}  # fmt: skip
PRECISIONS = {"float32": 1e-5, "bfloat16": 1e-3}  # precision of a run, and by how much its losses may differ
CASES = {"learns": [*COMPILED, "mixtral under autocast"], "writes": [*COMPILED], "runs": [*PRECISIONS]}
CHOSEN = one_by_commit([f"{test} {case}" for test, cases in CASES.items() for case in cases])
GENERATED = CHOSEN if len(CHOSEN) > 1 or taken_by_commit("generated code", 3) else []


def backends(test):
    """Pairs of a case and what compiles it."""
    return [
        (case, "inductor" if f"{test} {case}" in GENERATED else "aot_eager_decomp_partition") for case in CASES[test]
    ]


@pytest.fixture(autouse=True)
def quiet_and_anew():
    """Every warning is an error, but for torch's about what it does itself; nothing was compiled
    before.
    """
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "`torch.jit.script_method` is deprecated")
        warnings.filterwarnings("ignore", "<class 'torch.autograd.function.Function'> should not be instantiated")
        yield


def assert_the_same(values, *, backend, lower=False, atol=1e-5):
    torch.manual_seed(0)
    decoder = Decoder.of(values, **({} if "tie_word_embeddings" in values else {"tie_word_embeddings": True}))
    tokens, padding = torch.randint(VOCABULARY, (2, 20)), torch.tensor([0, 3])
    found = []
    for model in (decoder, torch.compile(decoder, fullgraph=True, backend=backend)):
        decoder.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            logits = model(tokens, padding=padding)
        logits.float().square().mean().backward()
        found.append((logits.detach().float(), decoder.embedding.weight.grad))
    assert decoder.head.weight is decoder.embedding.weight
    for one, other in zip(*found, strict=True):
        largest = one.abs().max()
        assert largest > 0
        torch.testing.assert_close(other / largest, one / largest, atol=atol, rtol=0)


@pytest.mark.parametrize("kind", some_by_commit([*WHOLE], 6))
def test_every_family_is_one_graph(kind):
    values = {**WHOLE[kind], **(NO_DROPOUT if kind == "gpt2" else {}), "tie_word_embeddings": True}
    assert_the_same(values, backend="eager")


@pytest.mark.parametrize(("case", "backend"), backends("learns"))
def test_compiled_it_says_and_learns_the_same(case, backend):
    kind, _, lower = case.partition(" under ")
    assert_the_same(COMPILED[kind], backend=backend, **({"lower": True, "atol": 0.03} if lower else {}))


@pytest.mark.parametrize(("kind", "backend"), backends("writes"))
def test_the_compiled_step_writes_the_same_text_and_is_compiled_once(monkeypatch, kind, backend):
    torch.manual_seed(0)
    decoder, prompts = Decoder.of(COMPILED[kind], tie_word_embeddings=True), [[5, 9, 11], [7]]
    expected = generation.generate(decoder, prompts, tokens=20)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    generation._compiled_step.cache_clear()
    counters.clear()
    assert generation.generate(decoder, prompts, tokens=20, compiled=True) == expected
    generation._compiled_step.cache_clear()
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize(("precision", "backend"), backends("runs"))
def test_a_compiled_run_takes_the_steps_of_an_eager_one(tmp_path, monkeypatch, precision, backend):
    """Forward, loss, backward, clipping, and the optimizer's step, as a run takes them."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    found = []
    for compiled in (False, True):
        run = prepared(
            small(
                tmp_path,
                model={"num_hidden_layers": 1},
                out=str(tmp_path / str(compiled)),
                compile=compiled,
                precision=precision,
                steps=4,
            )
        )
        found.append([event.values["loss"] for event in run.events() if event.kind == "step"])
        assert run.decoder.head.weight is run.decoder.embedding.weight
    assert found[1] == pytest.approx(found[0], abs=PRECISIONS[precision])
    assert found[0][3] < found[0][0] - 0.5  # it learns
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
