"""Numbers, texts, configs and files that the user gives to the explorer's page."""

import json
import re
from pathlib import Path

import pytest

import tallystick
from chromium import ABSENT, CHROMIUM
from explorer_page import BY_HAND, page_alone, settled, submit, total

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=ABSENT),
    pytest.mark.xdist_group("page"),  # one server, one browser
]


def test_the_causes_between_two_models_sum_to_the_gap(opened):
    page = opened()
    submit(page, "#other", "gpt2-medium")
    answer = tallystick.compare("gpt2", "gpt2-medium")
    assert answer.sentence in page.inner_text("#compare")
    numbers = [int(said.replace(",", "")) for said in page.locator("#compare svg .number").all_text_contents()]
    assert numbers == [
        answer.total_a,
        *(cause.parameters for cause in answer.causes if cause.parameters),
        answer.total_b,
    ]
    assert sum(numbers[:-1]) == numbers[-1]
    settled(page, page.click, "#alone")
    assert page.inner_text("#compare") == ""


@page_alone
def test_a_state_is_pinned_and_compared_with_what_comes_of_it(opened):
    page = opened()
    settled(page, page.click, "#pin")
    settled(page, page.uncheck, "#set-tie_word_embeddings")
    assert "-38,597,376" in page.inner_text("#compare")
    assert "--set-a tie_word_embeddings=false" in page.inner_text('.away[data-name="compare"] pre >> nth=0')


def test_a_claim_is_reconciled(opened):
    page = opened()
    submit(page, "#claim", "163M")
    assert tallystick.reconcile("gpt2", "163M").answer in page.inner_text("#reconcile")
    submit(page, "#claim", "many")
    assert "many" in page.inner_text("#reconcile .bad")
    assert total(page) == 124_439_808


def test_a_derivation_is_checked_against_the_model_that_is_shown(opened):
    page = opened()
    page.fill("#text", BY_HAND)
    settled(page, page.click, "#texts button")
    assert page.inner_text("#check del") == "38,596,416"
    assert page.inner_text("#check ins").strip() == "38,597,376"
    assert page.locator("#check .judged.right").count() == 5
    assert page.locator("#check .judged.carried").count() == 1
    assert "124,439,808" in page.inner_text("#check tfoot")
    struck = page.locator("#check del").evaluate("one => getComputedStyle(one).textDecorationLine")
    assert struck == "line-through"
    settled(page, page.uncheck, "#set-tie_word_embeddings")
    assert "163,037,184" in page.inner_text("#check tfoot")
    assert "--against gpt2" in page.inner_text('.away[data-name="check"] pre >> nth=0')
    page.wait_for_function("() => decodeURIComponent(location.hash).includes('tie_word_embeddings')")
    other = opened(page.evaluate("location.hash"))
    assert other.input_value("#text") == BY_HAND
    assert other.inner_text("#check") == page.inner_text("#check")
    page.fill("#text", " ")
    settled(page, page.click, "#texts button")
    assert page.inner_text("#check") == ""


@page_alone
def test_of_a_derivation_nothing_runs_and_what_is_none_is_said(opened):
    page = opened()
    page.fill("#text", "<img src=x onerror='document.title=1'><script>document.title=2</script> 2 × 3 = 7\n")
    settled(page, page.click, "#texts button")
    assert page.locator("#check img, #check script").count() == 0
    assert "<script>" in page.inner_text("#check .text")
    page.fill("#text", "hello")
    settled(page, page.click, "#texts button")
    assert "has no equation in it" in page.inner_text("#check .bad")


def test_a_config_is_pasted(opened):
    page = opened()
    page.click("#paste")
    page.fill("#config", json.dumps({"model_type": "llama", "num_hidden_layers": 2}))
    settled(page, page.click, "#pasting button")
    assert total(page) == tallystick.count({"model_type": "llama", "num_hidden_layers": 2}).total
    settled(page, page.fill, "#run-batch", "2")  # and is asked about further
    assert "batch 2" in page.inner_text("#memory")


RUBBISH = {
    "hello": "config.json is not JSON",
    " ": "There is no text to read",
    "[" * 90_000: "nested too deeply",
    "x" * 1_000_001: "allowed for a config",
}


def test_rubbish_that_is_pasted_is_said(opened):
    page = opened()
    for text, words in RUBBISH.items():
        page.is_visible("#config") or page.click("#paste")
        page.evaluate("text => { document.getElementById('config').value = text; }", text)
        page.click("#pasting button")
        page.wait_for_function("words => document.getElementById('error').textContent.includes(words)", arg=words)
        submit(page, "#name", "gpt2-medium")
        assert page.is_hidden("#error")
        assert total(page) == 354_823_168


def test_of_a_file_of_weights_the_header_alone_leaves_the_page(opened, tmp_path):
    import torch
    from safetensors.torch import save_file

    path = tmp_path / "toy.safetensors"
    save_file({"model.embed_tokens.weight": torch.full((5000, 64), 7.0), "lm_head.weight": torch.ones(10, 64)}, path)
    page, sent = opened(), []
    page.on("request", lambda request: sent.append(request.post_data_buffer or b""))
    settled(page, page.set_input_files, "#file", path)
    assert total(page) == 5010 * 64
    assert "Sliders need a config" in page.inner_text("#controls") or page.locator("#controls input").count() == 0
    assert sum(map(len, sent)) < 10_000 < path.stat().st_size
    assert bool(sum(map(len, sent))) is ("/explore/" not in page.url)  # from the static page nothing leaves at all


def test_a_file_is_dropped(opened):
    page = opened()
    drop = """text => {
        const carried = new DataTransfer();
        carried.items.add(new File([text], "config.json"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
    }"""
    settled(page, page.evaluate, drop, json.dumps({"model_type": "gpt2", "n_layer": 1}))
    assert total(page) == tallystick.count("gpt2", n_layer=1).total


@page_alone
def test_a_file_that_is_no_checkpoint_is_said(opened, tmp_path):
    page = opened()
    for length in (10**9, 2**60):
        path = tmp_path / f"bad-{length}.safetensors"
        path.write_bytes(length.to_bytes(8, "little") + b"{}")
        page.set_input_files("#file", path)
        playwright.expect(page.locator("#error")).to_contain_text(re.compile(rf"{path.name}.*truncated"))


def test_integers_beyond_a_browsers_are_exported_exactly(opened):
    page = opened()
    config = {"model_type": "llama", "num_hidden_layers": 2**40 + 1}
    page.click("#paste")
    page.fill("#config", json.dumps(config))
    settled(page, page.click, "#pasting button")
    with page.expect_download() as started:
        page.click('.away[data-name="count"] >> text="JSON"')
    total = tallystick.count(config).total
    assert float(total) != total
    assert json.loads(Path(started.value.path()).read_bytes())["totals"]["unique"] == total
