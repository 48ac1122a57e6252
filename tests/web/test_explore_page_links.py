"""The addresses of the explorer's page: links, stories, back and forward."""

import pytest

import tallystick
from chromium import ABSENT, CHROMIUM
from explorer_page import page_alone, settled, submit, total
from rotating import some_by_commit
from tallystick.web.public import public_page
from tallystick.web.stories import STORIES

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=ABSENT),
    pytest.mark.xdist_group("page"),  # one server, one browser
]


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


@page_alone
def test_a_link_that_was_broken_opens_the_page(opened):
    assert total(opened("#%7Bnothing")) == 124_439_808
    assert total(opened("#5")) == 124_439_808
    assert total(opened("#story=nothing")) == 124_439_808


@pytest.mark.parametrize("name", some_by_commit(list(STORIES), 4))
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
    page.wait_for_function("() => window.written > 0")  # the address, as conftest.py counts
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
