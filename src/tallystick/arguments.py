"""Name the called function in errors about its arguments: ``memory(): batch is 0, expected …``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from tallystick.errors import REQUEST, BadInput, nearest

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def named(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Return a public function whose errors about the request begin with its name.

    Other errors, such as those of a file, stay as they are. The command line prints all of them
    without the name.

    Args:
        function: takes config keys as further keywords, so a misspelled option looks like one.
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with naming(function.__qualname__):
            try:
                return function(*args, **kwargs)
            except BadInput as error:
                if error.code == "unknown-key":
                    error.args = (error.line + _nearest_option(function, kwargs),)
                raise

    return call


@contextmanager
def naming(function: str) -> Iterator[None]:
    """Name a public function in the errors about the request that the block raises.

    Args:
        function: its name. Of functions that call each other, the one that the user called wins.
    """
    try:
        yield
    except BadInput as error:
        if error.code in REQUEST:
            error.function = function
        raise


def _nearest_option(function: Callable[..., object], given: Iterable[str]) -> str:
    """Return `"; nearest option: batch"` if a keyword that is no option resembles one."""
    from inspect import Parameter, signature  # imported only when a call fails

    parameters = signature(function).parameters.values()
    options = [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY]
    found = (nearest(name, options, most=1) for name in given if name not in options)
    return next((words.replace("nearest", "nearest option") for words in found if words), "")
