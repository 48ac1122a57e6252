"""Capture what libraries warn and log about weight tying."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

ABOUT_TIES = re.compile(r"\b(un)?(tie|tied|ties|tying)\b|_tying|tie_|shared? (memory|param)", re.IGNORECASE)
MOST_SAID = 200  # characters


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collect warnings and logs about ties in the block; print nothing, restore the loggers.

    Yields:
        A list that is filled when the block ends.
    """
    from transformers.utils import logging as its

    getattr(its.warning_once, "cache_clear", lambda: None)()  # so that earlier warnings come again
    heard: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    before = [(logger, logger.handlers) for logger in (logging.root, *loggers) if logger.handlers]
    messages: list[str] = []
    verbosity = its.get_verbosity()
    try:
        its.set_verbosity_warning()  # whatever the verbosity was
        for logger, _ in before:
            logger.handlers = [handler]
        logging.root.handlers = [handler]
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("always")
            yield messages
    finally:
        its.set_verbosity(verbosity)
        logging.root.handlers = []
        for logger, handlers in before:
            logger.handlers = handlers
        texts = [*heard, *(str(one.message) for one in warned)]
        messages.extend(text for text in dict.fromkeys(texts) if ABOUT_TIES.search(text))


def first_sentence(text: str) -> str:
    """Return a message's first sentence, without parts that change from run to run.

    >>> first_sentence("ValueError: two  values: [{'b', 'a'}]. And more")
    'ValueError: two values'
    """
    text = re.sub(r"\[\{.*?\}\]", "", text)  # a set of names, in arbitrary order
    line = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(text.split()))
    line = re.split(r"[.!] (?=[A-Z])", line)[0].rstrip(".: ")
    return line if len(line) <= MOST_SAID else line[: MOST_SAID - 1] + "…"
