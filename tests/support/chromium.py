"""The system's Chromium, for the tests of pages."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

# Without windows first: one that draws its own bars takes twice the CPU for a page.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
ABSENT = "there is no Chromium: apt-get install chromium"
OPTIONS = [
    "--no-sandbox",  # as root it has none
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no other machine can be reached
    "--renderer-process-limit=1",  # none is started in advance
    "--disable-site-isolation-trials",  # nor one for each page that a tab opens
]


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """A browser of playwright's, of which a process can have one at a time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()
