"""The explorer's page in a real Chromium: each flow gives the command line's numbers.

Both who may answer it are tested: the process of `tallystick explore` in each flow, and Python in
the browser in a sixth of them by commit. What concerns the page alone is tried with the process.
See conftest.py for what else each test holds.
"""

import pytest

import tallystick
from chromium import ABSENT, CHROMIUM
from explorer_page import page_alone, settled, shared, submit, total
from tallystick.report.numbers import exact, in_giga

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=ABSENT),
    pytest.mark.xdist_group("page"),  # one server, one browser
]


def test_no_other_host_can_be_reached(browser):
    page = browser.new_page()
    for address in ("http://192.0.2.1/", "https://huggingface.co/"):
        with pytest.raises(playwright.Error, match="ERR_NAME_NOT_RESOLVED"):
            page.goto(address)
    page.close()


def test_it_opens_with_the_numbers_of_the_command_line(opened):
    page = opened()
    ledger = tallystick.count("gpt2")
    assert total(page) == ledger.total
    cells = page.locator("#count table tbody tr").all_inner_texts()
    assert [cell.split()[:2] for cell in cells] == [[role, exact(count)] for role, count in ledger.by("role").items()]
    assert in_giga(tallystick.memory("gpt2").total_bytes) in page.inner_text("#memory")
    assert page.locator("#formula math").count() == 4
    assert page.locator("#count [data-tie]").count() == 1


def test_a_slider_changes_count_formula_memory_and_cache_at_once(opened):
    page = opened()
    page.focus('[aria-label="layers, by steps"]')
    settled(page, page.keyboard.press, "ArrowRight")
    ledger = tallystick.count("gpt2", n_layer=13)
    assert total(page) == ledger.total
    assert "n_layer = 13" in page.inner_text("#formula")
    memory = tallystick.memory(ledger)
    assert in_giga(memory.total_bytes) in page.inner_text("#memory")
    assert f"KV cache: {exact(memory.kv_cache_bytes_per_token)} bytes per token" in page.inner_text("#memory")
    assert page.inner_text('.away[data-name="memory"] pre >> nth=0') == "tallystick memory gpt2 --set n_layer=13"
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('#formula').textContent.includes('n_layer = 48')")
    assert total(page) == tallystick.count("gpt2", n_layer=48).total
    assert page.get_attribute('[aria-label="layers, by steps"]', "aria-valuetext") == "48"


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("gpt2", {"n_embd": 1536, "vocab_size": 50304}),
        ("llama-3-8b", {"num_key_value_heads": 32, "num_attention_heads": 16}),
        ("mixtral-8x7b", {"num_local_experts": 16}),
    ],
)
@page_alone
def test_each_size_can_be_typed(opened, model, sizes):
    page = opened(shared({"model": {"name": model}}))
    for key, value in sizes.items():
        page.fill(f"#set-{key}", str(value))
        settled(page, page.press, f"#set-{key}", "Enter")
        assert total(page) == tallystick.count(model, **{key: value}).total
        settled(page, page.click, "#reset")


def test_untying_draws_the_head(opened):
    page = opened()
    settled(page, page.uncheck, "#set-tie_word_embeddings")
    assert total(page) == 163_037_184
    assert page.locator("#count [data-tie]").count() == 0
    settled(page, page.click, "#reset")
    assert total(page) == 124_439_808
    assert page.is_checked("#set-tie_word_embeddings")


def test_what_makes_no_model_is_said_and_the_page_goes_on(opened):
    page = opened()
    page.fill("#set-n_head", "7")
    settled(page, page.press, "#set-n_head", "Enter")
    assert page.inner_text("#error") == "gpt2: n_embd = 768 is not divisible by n_head = 7"
    page.fill("#set-n_head", "6")
    settled(page, page.press, "#set-n_head", "Enter")
    assert page.is_hidden("#error")
    assert total(page) == 124_439_808


def test_how_it_is_run_changes_the_memory(opened):
    page = opened()
    run = {"mode": "training", "optimizer": "sgd", "batch": 4, "sequence": 256, "dp": 2, "zero": 3, "device": "h100"}
    settled(page, page.select_option, "#run-mode", "training")
    assert page.is_hidden("#run-kv_dtype")
    for key in ("optimizer", "zero", "device"):
        settled(page, page.select_option, f"#run-{key}", str(run[key]))
    for key in ("batch", "sequence", "dp"):
        settled(page, page.fill, f"#run-{key}", str(run[key]))
    answer = tallystick.memory("gpt2", **run)
    assert in_giga(answer.total_bytes) in page.inner_text("#memory")
    assert "fits h100" in page.inner_text("#memory")
    assert "--optimizer sgd" in page.inner_text('.away[data-name="memory"] pre >> nth=0')
    settled(page, page.select_option, "#run-mode", "inference")
    assert "inference needs" in page.inner_text("#memory")


@page_alone
def test_an_option_that_is_not_given_says_what_it_is(opened):
    page = opened()
    assert page.get_attribute("#run-sequence", "placeholder") == "1024"
    assert page.get_attribute("#run-batch", "placeholder") == "1"
    assert page.locator("#run-dtype option").first.inner_text() == "default: float32"
    submit(page, "#name", "llama-3-8b")
    assert page.locator("#run-dtype option").first.inner_text() == "default: bfloat16"
    settled(page, page.select_option, "#run-mode", "training")
    assert page.locator("#run-optimizer option").first.inner_text() == "default: adamw"
    fields = "() => [...document.querySelectorAll('#run select')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.id)"
    assert page.evaluate(fields) == []


def test_the_strip_stays_and_says_changes_against_a_pinned_model(opened):
    page = opened()
    settled(page, page.click, "#hold")
    page.focus('[aria-label="layers, by steps"]')
    settled(page, page.keyboard.press, "ArrowRight")
    assert page.inner_text("#strip .change >> nth=0") == "+7.1M (+5.7%)"
    page.evaluate("() => document.querySelector('#h-away').scrollIntoView({ block: 'end' })")
    top = page.locator("#summary").bounding_box()["y"]
    assert top == 0
    page.click("#hold")
    playwright.expect(page.locator("#strip .change")).to_have_count(0)


def test_whether_it_fits_and_how_it_is_served(opened):
    page = opened("#model=llama-3-8b")
    settled(page, page.select_option, "#fit-device", "rtx4090")
    playwright.expect(page.locator("#fit")).to_contain_text("inference fits rtx4090")
    assert page.input_value("#run-device") == page.input_value("#serve-device") == "rtx4090"
    settled(page, page.select_option, "#serve-engine", "vllm")
    settled(page, lambda: (page.fill("#serve-max_model_len", "8192"), page.press("#serve-max_model_len", "Tab")))
    answer = tallystick.serve("llama-3-8b", engine="vllm", device="rtx4090", max_model_len=8192)
    for line in answer.lines:
        playwright.expect(page.locator("#serve")).to_contain_text(line)
    page.wait_for_function("() => location.hash.includes('max_model_len')")
    other = opened(page.evaluate("location.hash"))
    playwright.expect(other.locator("#serve")).to_contain_text(answer.lines[-1])
    assert other.input_value("#serve-max_model_len") == "8192"
    page.select_option("#fit-device", "")
    playwright.expect(page.locator("#serve")).to_contain_text("choose a device")


@page_alone
def test_all_devices_are_listed(opened):
    page = opened("#model=deepseek-v3")
    page.check("#all-devices")
    rows = page.locator("#devices tbody tr")
    playwright.expect(rows).to_have_count(len({cell.device for cell in tallystick.fit_all("deepseek-v3").devices}))
    page.wait_for_function("() => decodeURIComponent(location.hash).includes('\"devices\":true')")
    assert opened(page.evaluate("location.hash")).is_checked("#all-devices")


def test_ties_are_said(opened):
    page = opened()
    assert "transformer.wte.weight, lm_head.weight" in page.inner_text("#ties")
    settled(page, page.uncheck, "#set-tie_word_embeddings")
    assert "no tied weights" in page.inner_text("#ties")
