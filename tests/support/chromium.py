"""The system's Chromium, for the tests of pages."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ABSENT = "there is no Chromium: apt-get install chromium"
OPTIONS = [
    "--no-sandbox",  # as root it has none
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no other machine can be reached
    "--renderer-process-limit=1",  # none is started in advance
]


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """A browser of playwright's, of which a process can have one at a time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()
