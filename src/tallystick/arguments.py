"""Name the called function in errors about its arguments: ``memory(): batch is 0, expected …``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from tallystick.errors import REQUEST, BadInput, nearest, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def named(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Return a public function whose errors about the request begin with its name.

    Other errors, such as those of a file, stay as they are. The command line prints all of them
    without the name. A `TypeError` or `AttributeError` becomes such a line if an argument is not
    of its annotated type; types are looked at only then.

    Args:
        function: may take config keys as further keywords, so a misspelled option looks like one.
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with naming(function.__qualname__.removesuffix(".__init__")):
            try:
                return function(*args, **kwargs)
            except BadInput as error:
                if error.code == "unknown-key":
                    error.args = (error.line + _nearest_option(function, kwargs),)
                raise
            except (AttributeError, TypeError):
                if line := _wrong_type(function, args, kwargs):
                    raise BadInput(line, code="bad-value") from None
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


def check_fields(config: DataclassInstance) -> None:
    """Raise `BadInput`, with the class's name, if a field of a dataclass has another type.

    Args:
        config: a dataclass, for its ``__post_init__``. Text is not checked: a path or a dictionary
            often serves as well, and what reads it says so.
    """
    given = {one.name: getattr(config, one.name) for one in fields(config) if one.type not in (str, "str")}
    with naming(type(config).__name__):
        if line := _mismatch(type(config), given):
            raise BadInput(line, code="bad-value")


def _wrong_type(function: Callable[..., object], args: Iterable[object], kwargs: Mapping[str, object]) -> str:
    from inspect import signature

    try:
        given = signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # Python's own line says what is missing
        return ""
    return _mismatch(function, given)


def _mismatch(annotated: Callable[..., object], given: Mapping[str, object]) -> str:
    """Return `"folder is 4, expected text or PathLike"` for the first value of another type."""
    from typing import get_type_hints

    try:
        hints = get_type_hints(annotated)
    except NameError:  # a type that is imported for type checkers alone
        return ""
    for name, value in given.items():
        if name in hints and not _fits(value, hints[name]):
            return f"{name} is {shown(value)}, expected {_in_words(hints[name])}"
    return ""


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:  # since Python 3.11 a class, which isinstance refuses
        return True
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is float:
        return isinstance(value, int | float)
    kind = origin or hint
    return not isinstance(kind, type) or kind is object or isinstance(value, kind)


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_in_words, get_args(hint))))
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    words = {str: "text", int: "an integer", float: "a number", bool: "True or False", NoneType: "None"}
    return words.get(hint) or str(getattr(get_origin(hint) or hint, "__name__", hint))


def _nearest_option(function: Callable[..., object], given: Iterable[str]) -> str:
    """Return `"; nearest option: batch"` if an unknown keyword resembles an option."""
    from inspect import Parameter, signature  # imported only when a call fails

    parameters = signature(function).parameters.values()
    options = [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY]
    found = (nearest(name, options, most=1) for name in given if name not in options)
    return next((words.replace("nearest", "nearest option") for words in found if words), "")
