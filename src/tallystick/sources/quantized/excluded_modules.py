"""Match module names with a quantiser's patterns: names, globs, regular expressions.

Each match takes bounded time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tallystick.core.budget import current

LONGEST = 500  # characters of a pattern
# Regular expressions with repeated groups or many repeats may take unbounded time, so they are
# refused.
_MOST_REPEATS = 3
_STEPS, _STEPS_TO_COMPILE = 20, 200  # budget steps to match one name, and to compile a pattern
_REPEATED_GROUP = re.compile(r"\)[*+{]|\\\d|\(\?")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_PLAIN = re.compile(r"[\w.-]*")
_ABOVE = re.compile(r"^(?:(?:model|language_model|text_model)\.)+")  # prefixes that some configs add
_BLOCK = re.compile(r"(?<=\.)\d+(?=\.|$)")


class Patterns:
    """Module names as quantisers list them.

    A plain name matches the module, all modules below it, and each module whose name ends with it
    (transformers 5.23, `should_convert_module`). ``*`` matches as in a shell (ModelOpt). ``re:``
    starts a regular expression (compressed-tensors).

    >>> skipped = Patterns(["lm_head", "model.layers.0.mlp", "re:.*self_attn.*", "*.router*"])
    >>> skipped.matches("lm_head"), skipped.matches("model.layers.0.mlp.up_proj")
    (True, True)
    >>> skipped.matches("model.layers.1.mlp.up_proj")
    False
    >>> skipped.matches("model.layers.7.self_attn.q_proj")
    True
    >>> skipped.matches("model.layers.7.mlp.router")
    True
    """

    def __init__(self, given: Iterable[object]) -> None:
        self._names: set[str] = set()
        self._globs: list[list[str]] = []
        self._expressions: list[re.Pattern[str]] = []
        self.unread: list[str] = []  # patterns that cannot be read
        for pattern in given:
            self._add(pattern)
        self._bare = tuple(name for name in self._names if "." not in name)  # these also match as an ending

    def _add(self, pattern: object) -> None:
        if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST:
            self.unread.append(str(pattern)[:LONGEST])
        elif _PLAIN.fullmatch(pattern):
            self._names.add(_ABOVE.sub("", pattern.removesuffix(".weight")))
        elif not pattern.startswith("re:") and _PLAIN.fullmatch(pattern.replace("*", "")):
            self._globs.append(_ABOVE.sub("", pattern).split("*"))
        elif (found := _compiled(pattern.removeprefix("re:"))) is not None:
            self._expressions.append(found)
        else:
            self.unread.append(pattern)

    @property
    def by_layer(self) -> bool:
        """Whether a pattern may match one layer and not the next."""
        literal = (*self._names, *("*".join(parts) for parts in self._globs))
        return any(map(_BLOCK.search, literal)) or any(re.search(r"\d", one.pattern) for one in self._expressions)

    def matches(self, name: str) -> bool:
        """Return whether a module name matches one of the patterns."""
        current().step(2 * len(self._globs) + _STEPS * len(self._expressions))
        short = _ABOVE.sub("", name)
        if self._names and (name.endswith(self._bare) or not self._names.isdisjoint(_runs(short))):
            return True
        forms = (name, short)
        return any(_globbed(form, parts) for parts in self._globs for form in forms) or any(
            one.match(form) for one in self._expressions for form in forms
        )


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Compile a regular expression; return None if it is invalid or may take too long."""
    if _REPEATED_GROUP.search(pattern) or len(_REPEAT.findall(pattern)) > _MOST_REPEATS:
        return None
    current().step(_STEPS_TO_COMPILE)
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


def _runs(name: str) -> Iterator[str]:
    """Yield each run of a name's words: the module, its parents and the endings of their names."""
    words = name.split(".")
    return (".".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1))


def _globbed(name: str, parts: list[str]) -> bool:
    """Return whether a name consists of these parts with anything between them."""
    first, *rest = parts
    if not name.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return name.endswith(rest[-1]) and len(name) - len(rest[-1]) >= at
