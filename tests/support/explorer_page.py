"""What tests of the explorer's page do: open it, act, wait for the answer, read the total."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from repository import ROOT

DESK, PHONE = {"width": 960, "height": 600}, {"width": 390, "height": 780}
TOUCHED = {"width": 360, "height": 740}  # by fingers
BY_HAND = (ROOT / "examples" / "gpt2_by_hand.md").read_text(encoding="utf-8")
EVERYTHING = {"other": {"name": "gpt2-medium"}, "claim": "163M", "text": BY_HAND, "run": {"device": "h100"}}
BLOCKED = "Service Worker registration blocked by Playwright"  # by the tests' contexts


def page_alone(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test of what does not depend on who answers."""
    test.page_alone = True  # type: ignore[attr-defined]
    return test


def shared(settings: dict[str, Any]) -> str:
    """The fragment of a link to GPT-2 with settings, or to another model."""
    return "#" + json.dumps({"model": {"name": "gpt2"}, **settings})


def settled(page: Any, act: Callable[..., object], *words: str) -> None:
    """Act, and wait until that is answered."""
    shown = int(page.get_attribute("body", "data-shown"))
    act(*words)
    page.wait_for_function("before => Number(document.body.dataset.shown) > before", arg=shown)


def submit(page: Any, field: str, text: str) -> None:
    page.fill(field, text)
    settled(page, page.press, field, "Enter")


def total(page: Any) -> int:
    return int(re.search(r"([\d,]+) parameters", page.inner_text("#total"))[1].replace(",", ""))  # type: ignore[index]


class Tab:
    """A tab of a browser, what its page asks for, and what it complains of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(error.stack or str(error)))

    def _said(self, said: Any) -> None:
        if said.type in ("error", "warning") and said.text != BLOCKED:
            self.complaints.append(said.text)

    def open(self, address: str) -> Any:
        self.page.goto(address)
        self.page.wait_for_selector("body[data-shown]")
        return self.page

    def leave(self) -> tuple[list[str], list[str]]:
        """Become as a new tab, which costs more; return what was asked for and complained of."""
        self.page.emulate_media(media="null", reduced_motion="null")
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        found = self.asked[:], self.complaints[:]
        self.asked.clear(), self.complaints.clear()
        return found
