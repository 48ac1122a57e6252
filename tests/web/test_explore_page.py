"""The explorer's page in a real Chromium: each flow gives the command line's numbers, asks nobody
else, and is for everybody.

Both who may answer it are tested, the process of `tallystick explore` and Python in the browser;
what concerns the page alone, with the process. `--screenshots FOLDER` has the views written there,
for the docs.
"""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tallystick
from chromium import ABSENT, CHROMIUM, launched
from repository import ROOT
from tallystick.report.numbers import exact, in_giga
from tallystick.web.public import public_page
from tallystick.web.stories import STORIES

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=ABSENT),
    pytest.mark.xdist_group("page"),  # one server, one browser
]

DESK, PHONE = {"width": 960, "height": 600}, {"width": 390, "height": 780}
TOUCHED = {"width": 360, "height": 740}  # by fingers


def pytest_generate_tests(metafunc):
    if "answerer" in metafunc.fixturenames:
        answerers = ["started"] if hasattr(metafunc.function, "page_alone") else ["started", "hosted"]
        metafunc.parametrize("answerer", answerers, scope="module")


def page_alone(test):
    """Marks a test of what does not depend on who answers."""
    test.page_alone = True
    return test


@pytest.fixture(scope="module")
def home(request, answerer):
    """The page's address."""
    return request.getfixturevalue(answerer)


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def contexts(browser):
    """One context for each viewport and scheme of colours. The page keeps nothing in it from one
    test to the next.
    """
    made = {}

    def context(viewport, scheme):
        key = viewport["width"], scheme
        if key not in made:
            touched = {"has_touch": True, "is_mobile": True} if viewport == TOUCHED else {}
            made[key] = browser.new_context(
                viewport=viewport, color_scheme=scheme, accept_downloads=True, service_workers="block", **touched
            )
            made[key].set_default_timeout(15_000)
        return made[key]

    yield context
    for one in made.values():
        assert one.storage_state() == {"cookies": [], "origins": []}
        one.close()


BLOCKED = "Service Worker registration blocked by Playwright"  # by these contexts: it would hide requests from `look`


def is_complaint(said):
    return said.type in ("error", "warning") and said.text != BLOCKED


@pytest.fixture
def opened(contexts, home):
    """Opens the page; at the end nothing was asked of anybody else, and nothing was complained
    of.
    """
    pages, foreign, complaints = [], [], []

    def open_page(fragment="", *, viewport=DESK, dark=False):
        own = home.rsplit("/", 2)[0]

        def look(route):
            if route.request.url.startswith((own, "blob:")):
                route.continue_()
            else:
                foreign.append(route.request.url)
                route.abort()

        page = contexts(viewport, "dark" if dark else "light").new_page()
        pages.append(page)
        page.route("**/*", look)
        page.on("console", lambda said: complaints.append(said.text) if is_complaint(said) else None)
        page.on("pageerror", lambda error: complaints.append(error.stack or str(error)))
        page.goto(home + fragment)
        page.wait_for_selector("body[data-shown]")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert foreign == []
    assert complaints == []


def settled(page, act, *words):
    """What is shown once an act is answered."""
    shown = int(page.get_attribute("body", "data-shown"))
    act(*words)
    page.wait_for_function("before => Number(document.body.dataset.shown) > before", arg=shown)


def total(page):
    return int(re.search(r"([\d,]+) parameters", page.inner_text("#total"))[1].replace(",", ""))


def submit(page, field, text):
    page.fill(field, text)
    settled(page, page.press, field, "Enter")


def test_a_link_of_a_name_opens_it(opened):
    page = opened("#model=llama-3-8b")
    assert total(page) == tallystick.count("llama-3-8b").total
    submit(page, "#name", "gpt2-medium")
    page.wait_for_function("() => location.hash === '#model=gpt2-medium'")
    settled(page, page.uncheck, "#set-tie_word_embeddings")
    page.wait_for_function("() => location.hash.includes('tie_word_embeddings')")


def test_the_link_is_of_the_public_page(opened):
    page = opened("#model=gpt2-medium")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.click("#link")
    own = page.url.partition("#")[0]
    public = own if own.endswith("/explore/") else public_page() or "explore/"
    playwright.expect(page.locator("#said")).to_have_text(f"{public}#model=gpt2-medium")


def shared(settings):
    return "#" + json.dumps({"model": {"name": "gpt2"}, **settings})


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
    ("model", "key", "value"),
    [
        ("gpt2", "n_embd", 1536),
        ("gpt2", "vocab_size", 50304),
        ("llama-3-8b", "num_key_value_heads", 32),
        ("llama-3-8b", "num_attention_heads", 16),
        ("mixtral-8x7b", "num_local_experts", 16),
    ],
)
@page_alone
def test_each_size_can_be_typed(opened, model, key, value):
    page = opened(shared({"model": {"name": model}}))
    page.fill(f"#set-{key}", str(value))
    settled(page, page.press, f"#set-{key}", "Enter")
    assert total(page) == tallystick.count(model, **{key: value}).total


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


@page_alone
def test_what_was_pointed_at_is_forgotten_with_its_picture(opened):
    page = opened()
    page.hover("svg.diagram rect.token_embedding")
    assert page.inner_text("#pointed").startswith("token embedding (wte): 38,597,376 parameters")
    submit(page, "#name", "llama-3-8b")
    assert page.inner_text("#pointed") == "Hover or tap a part for details"


def test_the_diagram_is_read_and_unfolded_by_keyboard(opened):
    page = opened("#model=llama-3-8b")
    page.focus("svg.diagram")
    page.keyboard.press("Home")
    assert page.inner_text("#pointed").startswith("token embedding")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#pointed").startswith("32 equal blocks with 218,112,000 parameters each")
    settled(page, page.keyboard.press, "Enter")
    assert page.locator("#count rect[data-layer]").count() == 32 * 4  # two norms, attention, MLP
    assert page.evaluate("document.activeElement.matches('svg.diagram')")
    page.wait_for_function("() => decodeURIComponent(location.hash).includes('\"unfolded\":true')")
    page.keyboard.press("ArrowDown")
    settled(page, page.keyboard.press, "Enter")
    assert page.locator("#count rect[data-layer]").count() == 0


def test_the_diagram_is_unfolded_by_a_tap(opened):
    page = opened(viewport=PHONE)
    settled(page, page.click, "svg.diagram .fold")
    assert page.locator('#count rect[data-layer="11"]').count() == 4


@page_alone
def test_what_is_pointed_at_lights_up_at_each_place(opened):
    page = opened()
    page.hover('svg.diagram [data-part="token_embedding"]')
    lit = page.locator("svg.diagram .linked").evaluate_all(
        "all => all.map((one) => one.dataset.part ?? one.classList[0])"
    )
    assert lit == ["token_embedding", "head", "tie"]  # one matrix with two uses, and the arrow between them
    page.locator('svg.diagram [data-part="mlp"]').dispatch_event("pointerdown")  # a tap
    lit = page.locator("svg.diagram .linked").evaluate_all("all => all.map((one) => one.dataset.part)")
    assert lit == ["mlp"]
    rows = "all => all.map((one) => one.querySelector('th').textContent)"
    assert page.locator("#count tr.linked").evaluate_all(rows) == ["mlp"]
    assert page.locator("#compute tr.linked").evaluate_all(rows) == ["mlp"]
    assert page.locator("#formula tr.linked").count() == 4
    assert page.locator("#formula math .linked").all_text_contents()[0].startswith("12·n_embd")
    assert page.locator("#memory .share.linked").count() == 2  # of the weights, in prefill and decoding
    page.mouse.move(5, 5)
    assert page.locator(".linked").count() == 0


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


@page_alone
def test_boxes_move_to_a_slider_s_new_sizes_unless_less_motion_is_wanted(opened):
    page = opened()
    watch = """() => {
        window.moved = 0;
        const animate = Element.prototype.animate;
        Element.prototype.animate = function (steps, how) {
            if (steps[0].width !== steps[1].width) window.moved += 1;
            return animate.call(this, steps, how);
        };
    }"""
    for media, moves in (("no-preference", True), ("reduce", False)):
        page.emulate_media(reduced_motion=media)
        page.evaluate(watch)
        page.focus('[aria-label="layers, by steps"]')
        settled(page, page.keyboard.press, "ArrowRight")
        assert (page.evaluate("window.moved") > 0) == moves


@page_alone
def test_the_picture_is_by_role_layer_or_tensor_as_areas_or_lengths(opened):
    page = opened()
    settled(page, page.select_option, "#by", "layer")
    assert "transformer.h.11" in page.inner_text("#count table")
    settled(page, page.select_option, "#layout", "icicle")
    assert page.locator("svg.icicle").count() == 1
    settled(page, page.select_option, "#by", "tensor")
    assert page.locator("#count table tbody tr").count() == 149
    page.hover("svg.icicle rect.token_embedding")
    assert page.inner_text("#pointed").startswith("transformer.wte.weight: 50,257 × 768")
    page.locator("svg.icicle rect.position_embedding").first.dispatch_event("pointerdown")  # a tap, which moves nothing
    assert page.inner_text("#pointed").startswith("transformer.wpe.weight: 1,024 × 768")


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


BY_HAND = (ROOT / "examples" / "gpt2_by_hand.md").read_text(encoding="utf-8")


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "config.json is not JSON"),
        (" ", "There is no text to read"),
        ("[" * 90_000, "nested too deeply"),
        ("x" * 1_000_001, "allowed for a config"),
    ],
)
def test_rubbish_that_is_pasted_is_said(opened, text, words):
    page = opened()
    page.click("#paste")
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


@pytest.mark.parametrize("length", [10**9, 2**60])
@page_alone
def test_a_file_that_is_no_checkpoint_is_said(opened, tmp_path, length):
    (tmp_path / "bad.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}")
    page = opened()
    page.set_input_files("#file", tmp_path / "bad.safetensors")
    playwright.expect(page.locator("#error")).to_contain_text("truncated")


def test_a_link_restores_the_state(opened):
    page = opened()
    submit(page, "#name", "llama-3-8b")
    page.fill("#set-num_hidden_layers", "40")
    settled(page, page.press, "#set-num_hidden_layers", "Enter")
    settled(page, page.select_option, "#run-kv_dtype", "fp8")
    settled(page, page.select_option, "#layout", "icicle")
    submit(page, "#other", "llama-2-7b")
    submit(page, "#claim", "10B")
    page.wait_for_function("() => decodeURIComponent(location.hash).includes('10B')")
    other = opened(page.evaluate("location.hash"))
    assert total(other) == total(page) == tallystick.count("llama-3-8b", num_hidden_layers=40).total
    for part in ("#count", "#memory", "#compare", "#reconcile", "#away"):
        assert other.inner_text(part) == page.inner_text(part)
    assert other.locator("svg.icicle").count() == 1
    assert other.input_value("#run-kv_dtype") == "fp8"
    assert other.input_value("#other") == "llama-2-7b"


@pytest.mark.parametrize("name", STORIES)
@page_alone
def test_a_story_opens_in_place_by_its_address(opened, name):
    story = STORIES[name]
    page = opened(f"#story={name}")
    assert page.inner_text("#h-story") == story.title
    assert page.locator("#story > p:not(.note)").all_inner_texts() == list(story.sentences)
    for section in story.sections:
        playwright.expect(page.locator(f"#{section}")).not_to_be_empty()
    featured = page.locator("main > section.featured .answer:not(:empty)").evaluate_all(
        "all => all.map((one) => one.id)"
    )
    assert featured[: len(story.sections)] == list(story.sections)
    page.wait_for_timeout(250)  # in which the address is written
    assert page.evaluate("location.hash") == f"#story={name}"
    assert page.locator("#stories [aria-current]").get_attribute("data-story") == name


def test_a_story_is_left_and_opened_again(opened):
    page = opened("#model=gpt2-medium")
    settled(page, page.click, '#stories [data-story="tying"]')
    playwright.expect(page.locator("#memory")).to_contain_text("308,779,008")
    assert page.is_hidden("#story .changed")
    settled(page, page.fill, "#run-batch", "2")
    assert page.is_visible("#story .changed")
    page.wait_for_function("() => location.hash.includes('batch')")
    settled(page, page.click, "#story .changed a")
    assert page.evaluate("location.hash") == "#story=tying"
    assert page.input_value("#run-batch") == ""
    submit(page, "#name", "gpt2")
    assert page.is_hidden("#story")
    order = page.locator("main > section[aria-labelledby]").evaluate_all(
        "all => all.map((one) => one.getAttribute('aria-labelledby'))"
    )
    assert order[1:4] == ["h-count", "h-formula", "h-ties"]


def test_back_and_forward_go_from_model_to_model_not_from_slider_to_slider(opened):
    page = opened("#model=gpt2")
    page.focus('[aria-label="layers, by steps"]')
    settled(page, page.keyboard.press, "ArrowRight")
    settled(page, page.focus, "#name")  # the slider takes new stops
    submit(page, "#name", "llama-3-8b")  # at once: the address of the step before was not written yet
    settled(page, page.click, '#stories [data-story="163m"]')
    settled(page, page.go_back)
    assert total(page) == tallystick.count("llama-3-8b").total
    assert page.is_hidden("#story")
    settled(page, page.go_back)
    assert total(page) == tallystick.count("gpt2", n_layer=13).total
    assert page.input_value("#name") == "gpt2"
    settled(page, page.go_forward)
    assert total(page) == tallystick.count("llama-3-8b").total
    settled(page, page.go_forward)
    assert page.inner_text("#h-story") == STORIES["163m"].title


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


@page_alone
def test_a_link_that_was_broken_opens_the_page(opened):
    assert total(opened("#%7Bnothing")) == 124_439_808
    assert total(opened("#5")) == 124_439_808
    assert total(opened("#story=nothing")) == 124_439_808


def test_what_is_shown_can_be_taken_away(opened, tmp_path):
    page = opened()

    def taken(words):
        with page.expect_download() as started:
            page.click(f'.away[data-name="count"] >> text="{words}"')
        return open(started.value.path(), "rb").read()

    assert json.loads(taken("JSON")) == json.loads(json.dumps(tallystick.count("gpt2").to_dict()))
    assert b"transformer" not in taken("CSV")
    assert b"attention,28348416" in taken("CSV")
    svg = ElementTree.fromstring(taken("SVG"))
    words = " ".join(svg.itertext())
    assert page.inner_text("#total") in words
    assert "Where the parameters are, by role" in words
    assert "tallystick count gpt2" in words
    png = taken("PNG")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 2 * int(svg.get("width"))
    assert int.from_bytes(png[20:24], "big") == 2 * int(svg.get("height"))
    assert len(png) > 5000  # something is drawn


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


@page_alone
def test_a_keyboard_is_enough(opened):
    page = opened()
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("gpt2-medium")
    settled(page, page.keyboard.press, "Enter")
    assert total(page) == 354_823_168
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('class')"))
    assert {
        "paste",
        "file",
        "set-n_layer",
        "reset",
        "run-mode",
        "by",
        "layout",
        "picture diagram",
        "other",
        "pin",
        "claim",
        "text",
        "link",
    } <= reached


EVERYTHING = {"other": {"name": "gpt2-medium"}, "claim": "163M", "text": BY_HAND, "run": {"device": "h100"}}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("viewport", [DESK, PHONE])
@page_alone
def test_axe_finds_nothing(opened, dark, viewport):
    from axe_core_python.sync_playwright import Axe

    page = opened(shared(EVERYTHING), viewport=viewport, dark=dark)
    page.click("#paste")
    for details in page.locator("details").all():
        details.evaluate("folded => { folded.open = true; }")
    found = Axe().run(page)["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found] == []


TOO_SMALL = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary, .button")]
    .filter((one) => one.offsetParent !== null && !["file", "folder"].includes(one.id))
    .map((one) => [one.id || one.textContent, one.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 44 || height < 44).map(([name]) => name)"""


@page_alone
def test_fingers_find_what_they_touch(opened):
    page = opened(shared({**EVERYTHING, "serve": {"engine": "vllm"}, "story": "fit"}), viewport=TOUCHED)
    page.click("#paste")
    page.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    assert page.evaluate(TOO_SMALL) == []


@page_alone
def test_print_has_the_answers_and_no_controls(opened):
    page = opened(shared(EVERYTHING))
    page.emulate_media(media="print")
    shown = ["#total", "#count", "#formula", "#memory", "#compare", "#reconcile", "#check"]
    assert [place for place in shown if page.is_hidden(place)] == []
    hidden = ["#models", "#stories", "#controls", "#run", "#others", "#h-away", "#h-serve", "#texts"]
    assert [place for place in hidden if page.is_visible(place)] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@page_alone
def test_a_wide_screen_is_used(opened):
    page = opened(shared(EVERYTHING), viewport={"width": 2200, "height": 1200})
    places = {name: page.locator(f"#h-{name}").bounding_box() for name in ("count", "formula", "ties", "memory")}
    assert places["formula"]["y"] == places["count"]["y"]
    assert places["formula"]["x"] > places["count"]["x"] + 800
    assert places["memory"]["x"] + places["memory"]["width"] > 2100
    assert places["ties"]["y"] > places["count"]["y"]


@page_alone
def test_all_presets_can_be_chosen_from(opened):
    page = opened("#model=gpt2")
    page.focus("#name")
    assert page.input_value("#name") == ""  # so that the list is not only of gpt2's
    page.focus("#claim")
    assert page.input_value("#name") == "gpt2"


@page_alone
def test_a_phone_shows_it_without_scrolling_sideways(opened):
    page = opened(shared(EVERYTHING), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert float(page.locator("#count svg.picture").get_attribute("width")) <= PHONE["width"]


LLAMA = {"model": {"name": "llama-3-8b"}}
VIEWS = {
    "count": ({}, "#h-count", "light"),
    "count-dark": ({}, "#h-count", "dark"),
    "count-phone": ({}, "#h-count", "phone"),
    "treemap": ({"layout": "treemap"}, "#h-count", "light"),
    "icicle": ({"model": {"name": "mixtral-8x7b"}, "layout": "icicle", "by": "layer"}, "#h-count", "light"),
    "formula": (LLAMA, "#h-formula", "light"),
    "memory": ({**LLAMA, "run": {"mode": "training", "device": "h100"}}, "#h-memory", "light"),
    "compare": ({"model": {"name": "llama-2-7b"}, "other": LLAMA["model"]}, "#h-compare", "dark"),
    "reconcile": ({"claim": "162M"}, "#h-reconcile", "light"),
    "check": ({"text": BY_HAND}, "#check", "light"),
}


@pytest.mark.parametrize("view", VIEWS)
@page_alone
def test_each_view_is_drawn(opened, view, screenshots):
    settings, place, style = VIEWS[view]
    page = opened(shared(settings), viewport=PHONE if style == "phone" else DESK, dark=style == "dark")
    page.evaluate("place => document.querySelector(place).scrollIntoView()", place)
    drawn = page.screenshot(path=screenshots and screenshots / f"{view}.png")
    assert len(drawn) < 150_000
