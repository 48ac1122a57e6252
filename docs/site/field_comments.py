"""The comments behind a class's fields, as their descriptions: the code says each thing once."""

from __future__ import annotations

import io
import tokenize
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Describes each field of a class by the comment on its line."""

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Set the description, unless the field has a docstring."""
        said = comment(attr.lines[0]) if attr.parent and attr.parent.is_class and attr.lines else ""
        if said and not attr.docstring:
            attr.docstring = griffe.Docstring(said, parent=attr)


def comment(line: str) -> str:
    """Return the comment at the end of a line of code, or an empty string."""
    try:
        found = [token.string for token in tokenize.generate_tokens(io.StringIO(line.strip()).readline)]
    except tokenize.TokenError:  # the value goes on in the next line
        return ""
    words = next((token for token in found if token.startswith("#")), "").removeprefix("#").strip()
    return "" if words.startswith(("type:", "noqa")) else words
