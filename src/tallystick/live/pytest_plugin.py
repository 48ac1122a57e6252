"""The pytest fixture `assert_tied`.

def test_the_head_is_tied(assert_tied):
    assert_tied(build())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(name="assert_tied")
def _assert_tied() -> Callable[..., None]:
    """Return ``assert_tied(model, *names)``, which fails with one line and no traceback."""

    def check(model: Any, *names: str) -> None:
        __tracebackhide__ = True
        from tallystick.live import NotTied, assert_tied

        try:
            assert_tied(model, *names)
            return
        except NotTied as error:
            line = str(error)
        pytest.fail(line, pytrace=False)  # outside except, or pytest would show the line twice

    return check
