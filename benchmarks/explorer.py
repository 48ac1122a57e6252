"""How long the explorer's page takes to answer, in a real Chromium: answered by Python in the
browser, and by the process of `tallystick explore`.

    python benchmarks/explorer.py [--runs 40] [--site site]

- first answer: from opening the page to its count, picture and memory, with nothing in the caches.
- Python: until Python in the browser has answered too.
- warm start: the same on a later visit, whose files the service worker keeps.
- change: from a press of a key on the slider of layers to the new picture: question, answer and
  drawing together, the median and the 90th percentile.

`--site` is the folder that `make site` wrote; it is served from this machine. A slow profile has a
fourth of the CPU, 10 Mbit/s and 40 ms to the host.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from chromium import launched

TARGETS_MS = {"first answer": 1500, "warm start": 1000, "change": 50}
MODELS = ("gpt2", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "llama-3.1-405b")
STARTS = 5
SLOW = {"offline": False, "latency": 40, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}
TIMED = """
async (slider) => {
    const shown = document.body.dataset.shown;
    const start = performance.now();
    const at = Number(slider.value);
    slider.value = at < slider.max ? at + 1 : 0;
    slider.dispatchEvent(new Event("input"));
    while (document.body.dataset.shown === shown) await new Promise((next) => requestAnimationFrame(next));
    return performance.now() - start;
}
"""
# When the first picture and Python's first answer came, in milliseconds since the page was opened.
WATCHED = """
new MutationObserver(() => {
    const { first, shown } = document.body?.dataset ?? {};
    if (first && !window.first) window.first = performance.now();
    if (shown && !window.shown) window.shown = performance.now();
}).observe(document, { attributes: true, subtree: true });
"""


def main() -> None:
    """Time both, and print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--site", type=Path, default=Path("site"))
    options = parser.parse_args()
    with launched() as browser:
        with _hosted(options.site) as home:
            _starts(browser, home)
            _starts(browser, home, slow=True)
            _changes(browser, home, options.runs, "in the browser")
        with _command() as home:
            _changes(browser, home, options.runs, "by a process")


def _starts(browser: Browser, home: str, *, slow: bool = False) -> None:
    cold, warm = [], []
    for _ in range(STARTS):
        context = browser.new_context()
        context.add_init_script(WATCHED)
        cold.append(_visit(context, home, slow=slow))
        warm.append(_visit(context, home, slow=slow))
        context.close()
    profile = ", slow profile" if slow else ""
    _say(f"first answer{profile}", [first for first, _ in cold], None if slow else TARGETS_MS["first answer"])
    _say(f"Python{profile}", [shown for _, shown in cold])
    _say(f"first answer, warm{profile}", [first for first, _ in warm])
    _say(f"warm start{profile}", [shown for _, shown in warm], None if slow else TARGETS_MS["warm start"])


def _visit(context: BrowserContext, home: str, *, slow: bool) -> tuple[float, float]:
    """Open the page; return when the first picture and Python's answer came."""
    page = context.new_page()
    if slow:
        session = context.new_cdp_session(page)
        session.send("Network.emulateNetworkConditions", SLOW)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.goto(home)
    page.wait_for_function("() => window.first && window.shown", timeout=120_000)
    page.wait_for_function(
        "async () => (await navigator.serviceWorker.ready).active.state === 'activated'", timeout=120_000
    )
    times = page.evaluate("[window.first, window.shown]")
    page.close()
    return times[0], times[1]


def _changes(browser: Browser, home: str, runs: int, how: str) -> None:
    for model in MODELS:
        page: Page = browser.new_page()
        page.goto(f"{home}#model={model}")
        page.wait_for_selector("body[data-shown]")
        slider = page.locator('[aria-label="layers, by steps"]')
        _say(f"change {how}, {model}", [slider.evaluate(TIMED) for _ in range(runs)], TARGETS_MS["change"])
        page.close()


def _say(what: str, times: list[float], target: int | None = None) -> None:
    middle = median(times)
    verdict = "" if target is None else f"  {'within' if middle <= target else 'beyond'} {target}"
    print(f"{what:40} median {middle:6.0f} ms  90% {quantiles(times, n=10)[-1]:6.0f}{verdict}", flush=True)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _hosted(site: Path) -> Iterator[str]:
    """Serve the static page, as any web host does."""
    if not any(site.glob("explore/python-*")):
        sys.exit(f"{site} holds no explorer: make site")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/explore/"
        server.shutdown()


@contextmanager
def _command() -> Iterator[str]:
    command = [sys.executable, "-m", "tallystick", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
