"""The site in a real Chromium: its search finds the page that answers, the architectures are
filtered, nothing is wider than the page.
"""

from __future__ import annotations

import functools
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from chromium import ABSENT, CHROMIUM
from rotating import some_by_commit
from tallystick.web.stories import STORIES

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=ABSENT), pytest.mark.xdist_group("site")]

FIRST = {
    "fit gpu": "choose-a-gpu",
    "kv cache": "memory",
    "tied weights": "ties",
    "163M": "published-counts",
    "teach": "teaching",
    "qwen3_moe": "architectures/experts",
}
SEARCH = re.compile(r"/search/search_index|/workers/search\.")
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page(viewport=DESK)
    page.set_default_timeout(30_000)
    playwright.expect.set_options(timeout=30_000)
    yield page
    page.close()


@pytest.fixture
def unsearched(page):
    """Without the search, which reads its whole index on each page that is opened."""
    page.route(SEARCH, lambda route: route.abort())
    yield page
    page.unroute(SEARCH)


def test_the_search_finds_the_page_that_answers_first(page, address):
    page.goto(f"{address}/index.html")
    for words, place in FIRST.items():
        page.fill(".md-search__input", words)
        page.press(".md-search__input", "End")  # it looks when a key is released
        found = page.locator(".md-search-result__link").first
        playwright.expect(found).to_have_attribute("href", re.compile(rf"{address}/{place}\.html"))


def test_the_architectures_are_filtered(unsearched, address):
    page = unsearched
    page.goto(f"{address}/architectures.html")
    rows = page.locator("tbody tr:visible")
    assert rows.count() > 180
    page.fill(".filter", "qwen latent")
    playwright.expect(rows).to_have_count(0)
    page.fill(".filter", "qwen3 experts")
    assert all("qwen3" in row and "experts" in row for row in rows.all_inner_texts())
    assert rows.count() > 0


FRAMED = {
    "published-counts": ["163m", "671b"],
    "memory": ["gqa"],
    "choose-a-gpu": ["fit"],
    "teaching": ["hand"],
    "why-tie": ["tying"],
}


@pytest.mark.parametrize("name", some_by_commit([*FRAMED], 2))
def test_a_story_is_shown_in_the_page_of_its_question(unsearched, address, name):
    page, asked = unsearched, []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{name}.html")
    frames = page.locator("iframe.story")
    assert frames.count() == len(FRAMED[name])
    for frame, story in zip(frames.all(), FRAMED[name], strict=True):
        frame.scroll_into_view_if_needed()
        shown = frame.content_frame
        playwright.expect(shown.locator("#story > p").first).to_have_text(STORIES[story].sentences[0])
        playwright.expect(shown.locator(f"#{STORIES[story].sections[0]}")).not_to_be_empty()
        assert shown.locator("header").is_hidden()
        assert shown.locator("#whole").get_attribute("href") == f"./#story={story}"
        page.wait_for_function(
            "frame => frame.clientHeight === frame.contentDocument.body.offsetHeight", arg=frame.element_handle()
        )
    assert not [url for url in asked if "python-" in url or "snapshot" in url]  # before the reader changes something


VISITED = (
    "index",
    "memory",
    "commands/check",
    "commands/compare",
    "walkthroughs/replaced_head",
    "walkthroughs/derivation",
    "architectures",
    "python/count",
)
CUT = """
[...document.querySelectorAll("pre > code")]
  .filter((code) => !code.querySelector(".row") && code.scrollWidth > code.clientWidth + 1)
  .map((code) => code.textContent)
"""


@pytest.mark.parametrize("name", some_by_commit(VISITED, 4))
def test_nothing_is_wider_than_the_page(unsearched, address, name):
    """Lines of blocks are folded; tables in them fit a desk, and scroll on a phone."""
    page = unsearched
    for viewport in (PHONE, DESK):
        page.set_viewport_size(viewport)
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert page.evaluate(CUT) == []
    assert page.evaluate(CUT.replace('!code.querySelector(".row") && ', "")) == []
