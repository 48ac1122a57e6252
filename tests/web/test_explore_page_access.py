"""The explorer's page is for everybody: by keyboard, by fingers, read aloud, on paper, on each
screen.
"""

from itertools import product

import pytest

from chromium import ABSENT, CHROMIUM
from explorer_page import DESK, EVERYTHING, PHONE, TOUCHED, page_alone, settled, shared, total
from rotating import some_by_commit

pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=ABSENT),
    pytest.mark.xdist_group("page"),  # one server, one browser
]


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


OF_COLOURS = ["color-contrast", "link-in-text-block"]  # what a scheme of colours decides; the elements are the same


@pytest.mark.parametrize(("viewport", "dark"), some_by_commit(list(product([DESK, PHONE], [False, True])), 2))
@page_alone
def test_axe_finds_nothing(opened, dark, viewport):
    from axe_core_python.sync_playwright import Axe

    page = opened(shared(EVERYTHING), viewport=viewport, dark=dark)
    page.click("#paste")
    for details in page.locator("details").all():
        details.evaluate("folded => { folded.open = true; }")
    said = Axe().run(page, options={"runOnly": OF_COLOURS} if dark else None)
    assert "color-contrast" in {one["id"] for one in said["passes"]}
    found = said["violations"]
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
