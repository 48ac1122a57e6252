"""The explorer as a page that any web host serves: Python runs in the browser, which gives the
numbers of this machine's Python, goes on without a network, and begins before Python is there.
"""

import json
import shutil
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer
import tallystick
from chromium import ABSENT, CHROMIUM
from configs import CONFIGS
from drawing import drawn, some
from explorer_page import total
from tallystick.errors import BadInput
from tallystick.presets import PRESETS
from tallystick.web.answers import answers
from web_server import served

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = pytest.mark.xdist_group("page")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)


@in_browser
def test_without_python_the_first_answer_is_shown_and_what_is_missing_is_said(browser, hosted):
    page = browser.new_page(service_workers="block")
    page.route("**/snapshot", lambda route: route.fulfill(status=404))
    page.goto(hosted)
    playwright.expect(page.locator("#error")).to_contain_text("this copy of the site lacks Python")
    playwright.expect(page.locator("#total")).to_contain_text("parameters")  # which is fetched at the same time
    assert total(page) == 124_439_808
    assert page.locator("#count svg.diagram").count() == 1
    assert page.input_value("#set-n_layer") == "12"
    assert page.locator("#away").inner_text() == ""  # what is exported comes from Python
    page.close()


@in_browser
def test_a_first_answer_that_comes_in_part_leaves_the_page_to_python(browser, hosted):
    page, complaints = browser.new_page(service_workers="block"), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.route("**/first/gpt2*.json", lambda route: route.fulfill(body="", content_type="application/json"))
    page.goto(hosted)
    page.wait_for_selector("body[data-shown]", timeout=60_000)
    assert total(page) == 124_439_808
    assert complaints == []
    page.close()


@in_browser
def test_it_works_without_a_network(browser, static_folder, tmp_path):
    folder = shutil.copytree(static_folder / "explore", tmp_path / "explore")
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        with served(tmp_path) as server:
            address = f"http://127.0.0.1:{server.server_port}/explore/"
            page.goto(address)
            page.wait_for_function("async () => (await navigator.serviceWorker.ready).active.state === 'activated'")
        shutil.rmtree(folder)
        page.goto(f"{address}#model=gpt2")
        page.reload()
        page.wait_for_selector("body[data-shown]")
        page.fill("#set-n_layer", "24")
        page.press("#set-n_layer", "Enter")
        page.wait_for_function("() => document.querySelector('#formula').textContent.includes('n_layer = 24')")
        assert total(page) == tallystick.count("gpt2", n_layer=24).total


REQUESTS = """async (requests) => {
    const { connect } = await import("./static/answerers.js");
    const answerer = connect(await (await fetch("start.json")).json());
    const replies = [];
    for (const request of requests) replies.push(await answerer.ask(request));
    answerer.worker.terminate();
    return replies;
}"""
WANTED = ["count", "formula", "memory", "compute", "reconcile"]


@in_browser
def test_its_numbers_are_those_of_this_machine(browser, hosted, drawn_requests):
    """With `TALLYSTICK_EXAMPLES` set: all presets, and as many drawn configs."""
    page = browser.new_page(service_workers="block")
    page.route("**/explore.js", lambda route: route.abort())  # Python is started once, below
    page.goto(hosted)
    replies = page.evaluate(REQUESTS, drawn_requests)
    page.close()
    for request, reply in zip(drawn_requests, replies, strict=True):
        assert reply == json.loads(json.dumps(answers(request, None)), parse_int=_as_double), request["model"]


def _as_double(digits):
    """Return an integer as JavaScript writes it for this test.

    Above 2^53, as of training 1.6 trillion parameters, that is the shortest form of a double.
    """
    return int(digits) if abs(int(digits)) <= 2**53 else int(Decimal(repr(float(digits))))


def drawn_configs(most):
    """Small random configs of all types."""
    found = []

    @drawn(most)
    @given(st.sampled_from(sorted(CONFIGS)).flatmap(CONFIGS.get))
    def draw(config):
        found.append(config)

    draw()
    return found


@pytest.fixture
def drawn_requests():
    models = [{"name": name} for name in some(list(PRESETS), 5)]
    models += [{"config": json.dumps(config)} for config in drawn_configs(5)]
    return [{"model": model, "wanted": WANTED, "claim": "7B"} for model in models]


@pytest.mark.parametrize("missing", ["node", "npm"])
def test_without_npm_one_line_says_what_is_needed(missing, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shutil, "which", lambda program: None if program == missing else f"/bin/{program}")
    monkeypatch.setattr("sys.argv", ["explorer.py", str(tmp_path / "explore")])
    assert explorer.main() == 2
    assert capsys.readouterr().err == f"the explorer's page needs {missing}: install Node.js 18 or newer, with npm\n"
    assert list(tmp_path.iterdir()) == []


def test_what_npm_says_when_it_fails_is_passed_on(monkeypatch, tmp_path):
    (tmp_path / "npm").write_text("#!/bin/sh\necho first >&2; echo 'npm error no such host' >&2; exit 1\n")
    (tmp_path / "node").write_text("#!/bin/sh\n")
    for name in ("npm", "node"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(BadInput, match=r"^npm could not fetch pyodide@[\d.]+: npm error no such host$"):
        explorer.build(tmp_path / "explore")


def test_equal_files_make_equal_archives(tmp_path):
    for name in ("a", "b"):
        explorer._packages(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
