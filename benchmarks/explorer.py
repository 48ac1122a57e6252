"""How long the explorer's page takes from a slider's move to the new picture, in a real Chromium on
loopback.

    python benchmarks/explorer.py [--runs 40]

A move is one press of a key on the slider of layers. The time ends when count, formula, memory and
operations of the new model are on the page: question, answer and drawing together.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from statistics import median, quantiles

from playwright.sync_api import sync_playwright

TARGET_MS = 100  # the median
MODELS = ("gpt2", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "llama-3.1-405b")
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


def main() -> None:
    """Time each model, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    command = [sys.executable, "-m", "tallystick", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as started:
        assert server.stdout is not None
        home = server.stdout.readline().strip()
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print("milliseconds from a slider's move to the new page")
        for model in MODELS:
            page = browser.new_page()
            page.goto(f'{home}#{{"model":{{"name":"{model}"}}}}')
            page.wait_for_selector("body[data-shown]")
            slider = page.locator('[aria-label="layers, by steps"]')
            times = [slider.evaluate(TIMED) for _ in range(runs)]
            middle = median(times)
            verdict = "within" if middle <= TARGET_MS else "beyond"
            print(f"{model:16} median {middle:5.0f}  90% {quantiles(times, n=10)[-1]:5.0f}  {verdict} {TARGET_MS}")
            page.close()
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
