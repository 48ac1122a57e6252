"""Which modules the patterns of a quantiser mean: names, globs and regular expressions, each read in bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tallystick.core.budget import current

LONGEST = 500  # characters of a pattern
# A regular expression from a config may take time without end: one with repeated groups, or with many repeats.
_MOST_REPEATS = 3
_STEPS, _STEPS_TO_COMPILE = 20, 200  # of the budget, for one name and for reading it
_REPEATED_GROUP = re.compile(r"\)[*+{]|\\\d|\(\?")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_PLAIN = re.compile(r"[\w.-]*")
_ABOVE = re.compile(r"^(?:(?:model|language_model|text_model)\.)+")  # what some put in front of the same names
_BLOCK = re.compile(r"(?<=\.)\d+(?=\.|$)")


class Patterns:
    """Names of modules as quantisers list them.

    A plain name means the module, all below it, and each module whose name ends so (transformers 5.23,
    `should_convert_module`); ``*`` is as in a shell (ModelOpt); ``re:`` begins a regular expression
    (compressed-tensors).

    >>> skipped = Patterns(["lm_head", "model.layers.0.mlp", "re:.*self_attn.*", "*.router*"])
    >>> [skipped.matches(name) for name in ("lm_head", "model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj")]
    [True, True, False]
    >>> skipped.matches("model.layers.7.self_attn.q_proj"), skipped.matches("model.layers.7.mlp.router")
    (True, True)
    """

    def __init__(self, given: Iterable[object]) -> None:
        self._names: set[str] = set()
        self._globs: list[list[str]] = []
        self._expressions: list[re.Pattern[str]] = []
        self.unread: list[str] = []  # patterns that cannot be read
        for pattern in given:
            self._add(pattern)
        self._bare = tuple(name for name in self._names if "." not in name)  # any name may end so

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
        """Whether one layer may match and the next one not."""
        literal = (*self._names, *("*".join(parts) for parts in self._globs))
        return any(map(_BLOCK.search, literal)) or any(re.search(r"\d", one.pattern) for one in self._expressions)

    def matches(self, name: str) -> bool:
        """Whether a module of that name is meant."""
        current().step(2 * len(self._globs) + _STEPS * len(self._expressions))
        short = _ABOVE.sub("", name)
        if self._names and (name.endswith(self._bare) or not self._names.isdisjoint(_runs(short))):
            return True
        forms = (name, short)
        return any(_globbed(form, parts) for parts in self._globs for form in forms) or any(
            one.match(form) for one in self._expressions for form in forms
        )


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """A regular expression; None of one that is broken, or that may take too long."""
    if _REPEATED_GROUP.search(pattern) or len(_REPEAT.findall(pattern)) > _MOST_REPEATS:
        return None
    current().step(_STEPS_TO_COMPILE)
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


def _runs(name: str) -> Iterator[str]:
    """Each run of a name's words: the module, those around it, and the ends of their names."""
    words = name.split(".")
    return (".".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1))


def _globbed(name: str, parts: list[str]) -> bool:
    """Whether a name is these parts with anything between them."""
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
