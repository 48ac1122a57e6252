"""The pictures of the explorer's page: pointed at, unfolded, moved, exported.

`--screenshots FOLDER` has the views written there, for the docs.
"""

import json
from xml.etree import ElementTree

import pytest

import tallystick
from chromium import ABSENT, CHROMIUM
from explorer_page import BY_HAND, DESK, PHONE, page_alone, settled, shared, submit
from rotating import some_by_commit

pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=ABSENT),
    pytest.mark.xdist_group("page"),  # one server, one browser
]


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


def pytest_generate_tests(metafunc):
    if "view" in metafunc.fixturenames:
        written = metafunc.config.getoption("--screenshots")
        metafunc.parametrize("view", list(VIEWS) if written else some_by_commit(list(VIEWS), 4))


@page_alone
def test_each_view_is_drawn(opened, view, screenshots):
    settings, place, style = VIEWS[view]
    page = opened(shared(settings), viewport=PHONE if style == "phone" else DESK, dark=style == "dark")
    page.evaluate("place => document.querySelector(place).scrollIntoView()", place)
    drawn = page.screenshot(path=screenshots and screenshots / f"{view}.png")
    assert len(drawn) < 150_000
