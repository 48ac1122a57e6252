"""The strip of figures: parameters, memory, KV cache and FLOPs of a model, and their changes."""

import re

import pytest

import tallystick
from tallystick.web.answers import answers
from tallystick.web.strip import figures


def strip(model, **more):
    return answers({"model": {"name": model}, "wanted": ["strip"], **more}, None)["strip"]["html"]


def shown(html):
    """Each figure by its term, with its change and what is said of it."""
    cells = re.findall(r"<dt>(.*?)</dt><dd class=figure>(.*?)</dd>(.*?)</div>", html)
    return {term: [figure, *re.findall(r"<dd[^>]*>([^<]+)</dd>", more)] for term, figure, more in cells}


def test_the_figures_of_gpt2():
    # KV cache: a key and a value of 768 elements in float32 in each of 12 layers.
    assert 2 * 768 * 4 * 12 == 73_728
    assert shown(strip("gpt2")) == {
        "parameters": ["124.4M", "124,439,808"],
        "inference memory": ["0.643 GB", "no device chosen"],
        "KV cache": ["73.7 kB", "for each token"],
        "FLOPs per token": ["284.8 MFLOP", "854.4 MFLOP in training"],
    }


@pytest.mark.parametrize(
    ("model", "active"), [("mixtral-8x7b", "12.9B"), ("deepseek-v3", "37.6B"), ("llama-3-8b", "")]
)  # Jiang et al. 2024: 13B; DeepSeek-AI 2024: 37B
def test_active_parameters(model, active):
    said = shown(strip(model))["parameters"][-1]
    assert said == (f"{active} active for one token" if active else "8,030,261,248")


def test_what_is_free_on_a_device():
    run = {"device": "80GB", "dtype": "float16"}
    html = strip("llama-3-8b", run=run)
    free = 80_000_000_000 - tallystick.memory("llama-3-8b", **run).total_bytes
    assert shown(html)["inference on 80GB"][1] == f"{free / 1e9:.1f} GB of 80.0 GB free"
    assert 'class="meter"' in html
    full = strip("llama-3-8b", run=run | {"device": "10GB"})
    assert shown(full)["inference on 10GB"][1].endswith(" GB too much")
    assert 'class="meter full"' in full


def test_the_changes_against_a_pinned_model():
    found = shown(strip("llama-3-8b", other={"name": "llama-2-7b"}))
    assert found["parameters"][1] == "+1.3B (+19.2%)"  # 8,030,261,248 and 6,738,415,616
    assert found["KV cache"][1] == "−393.2 kB (−75.0%)"  # 8 KV heads instead of 32
    same = shown(strip("gpt2", other={"name": "gpt2"}))
    assert same["parameters"][1] == "±0"


def test_a_pinned_model_has_its_own_settings_and_the_same_run():
    pinned = {"other": {"name": "gpt2"}, "other_set": {"n_layer": 24}, "run": {"batch": 2}}
    parameters = 124_439_808 + 12 * 7_087_872
    assert shown(strip("gpt2", **pinned))["parameters"][1] == f"−85.1M (−{12 * 7_087_872 / parameters:.1%})"


def test_a_training_has_no_kv_cache():
    found = shown(strip("gpt2", run={"mode": "training"}))
    assert list(found) == ["parameters", "training memory", "FLOPs per token"]


def test_an_invalid_option_leaves_the_other_figures():
    found = shown(strip("gpt2", run={"sequence": 5000}))
    assert list(found) == ["parameters"]


def test_the_figures_are_those_of_the_answers():
    ledger = tallystick.count("qwen3-30b-a3b")
    memory, compute = tallystick.memory(ledger, device="h100"), tallystick.compute(ledger)
    found = figures(ledger, memory, compute)
    assert (found.parameters, found.active) == (ledger.total, ledger.totals["active"])
    assert (found.memory, found.room) == (memory.total_bytes, memory.device.room)
    assert (found.cache, found.flops * compute.tokens) == (memory.kv_cache_bytes_per_token, compute.forward_flops)


def test_a_hostile_name_is_escaped():
    config = '{"model_type": "gpt2"}'
    pinned = {"other": {"config": config, "file": '"><script>'}}
    html = answers({"model": {"name": "gpt2"}, "wanted": ["strip"], **pinned}, None)["strip"]["html"]
    assert "<script>" not in html
    assert "change" in html
