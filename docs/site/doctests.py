"""The examples in docstrings, as code: without a fence Markdown takes ``>>>`` for a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around each example."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change the docstring of the package itself, which griffe does not count among its
        objects.
        """
        self.on_object(obj=pkg)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of what griffe has read."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
