"""The explorer's page in its two forms, each set up once: of the command, and static; and tabs that
open it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import explorer
from built_site import fresh_site
from explorer_page import DESK, TOUCHED, Tab
from rotating import taken_by_commit
from tallystick.errors import BadInput
from web_server import served


@pytest.fixture(scope="session")
def started():
    """The address of a server that the command started."""
    command = [sys.executable, "-m", "tallystick", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.terminate()


@pytest.fixture(scope="session")
def static_folder(tmp_path_factory):
    """The site with the static page: that of `make site` where it is fresh, or one built here."""
    made = fresh_site()
    if made is not None and any(made.glob("explore/python-*/snapshot")):
        return made
    folder = tmp_path_factory.mktemp("site")
    try:
        explorer.build(folder / "explore", presets=["gpt2"])
    except BadInput as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="session")
def hosted(static_folder):
    """The address of the static page on a plain web server."""
    with served(static_folder) as server:
        yield f"http://127.0.0.1:{server.server_port}/explore/"


ALWAYS = "test_a_slider_changes_count_formula_memory_and_cache_at_once"
SHARE = 6  # one flow in six is tried with Python in the browser too, which takes seconds to start
PAGE = ("src/tallystick/web/", "src/tallystick/report/html/", "tests/web/", "tests/support/explorer_page.py")


def pytest_generate_tests(metafunc):
    if "answerer" in metafunc.fixturenames:
        test = metafunc.function
        hosted = test.__name__ == ALWAYS or taken_by_commit(test.__name__, SHARE)
        answerers = ["started", "hosted"] if hosted and not hasattr(test, "page_alone") else ["started"]
        if test.__name__ != ALWAYS and not taken_by_commit(f"flow {test.__name__}", 2, PAGE):
            answerers = []  # skipped: a commit that leaves the page alone tries half of the flows
        metafunc.parametrize("answerer", answerers, scope="module")


@pytest.fixture(scope="module")
def home(request, answerer):
    """The page's address."""
    return request.getfixturevalue(answerer)


COUNTED = """
window.written = 0;
const replace = history.replaceState;
history.replaceState = function (...words) { replace.apply(this, words); window.written += 1; };
"""


@pytest.fixture(scope="session")
def tabs(browser):
    """Takes a tab of a viewport and a scheme of colours, and takes it back. Each pair has one
    context, in which the page keeps nothing from one test to the next.
    """
    contexts, free = {}, {}

    def context(viewport, scheme):
        key = viewport["width"], scheme
        if key not in contexts:
            touched = {"has_touch": True, "is_mobile": True} if viewport == TOUCHED else {}
            contexts[key] = browser.new_context(
                viewport=viewport,
                color_scheme=scheme,
                accept_downloads=True,
                service_workers="block",  # one would hide requests from the tab
                **touched,
            )
            contexts[key].set_default_timeout(15_000)
            contexts[key].add_init_script(COUNTED)
        return contexts[key]

    def take(viewport, scheme):
        waiting = free.setdefault((viewport["width"], scheme), [])
        return waiting.pop() if waiting else Tab(context(viewport, scheme).new_page())

    def give_back(tab, viewport, scheme):
        free[viewport["width"], scheme].append(tab)

    yield take, give_back
    for one in contexts.values():
        assert one.storage_state() == {"cookies": [], "origins": []}
        one.close()


@pytest.fixture
def opened(tabs, home):
    """Opens the page; at the end nothing was asked of anybody else, and nothing was complained
    of.
    """
    take, give_back = tabs
    taken = []

    def open_page(fragment="", *, viewport=DESK, dark=False):
        kind = viewport, "dark" if dark else "light"
        tab = take(*kind)
        taken.append((tab, kind))
        return tab.open(home + fragment)

    yield open_page
    own = home.rsplit("/", 2)[0]
    foreign, complaints = [], []
    for tab, kind in taken:
        asked, said = tab.leave()
        foreign += [address for address in asked if not address.startswith((own, "blob:"))]
        complaints += said
        give_back(tab, *kind)
    assert foreign == []
    assert complaints == []
