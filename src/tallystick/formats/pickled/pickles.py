"""Interpret a pickle step by step without running it, to learn what it would build.

A pickle is a small program: it names classes and functions, and calls them. The standard library's
`pickletools` decodes the steps and runs none. Our machine interprets them with plain values, and
with the names that a format lists. Each listed name has a function of ours that only notes the
arguments. Any other name is refused, or becomes a placeholder if a format allows strangers.

Each step and its result count against the budget of the source. The result is plain values,
`Other` for known names without further meaning, and results of the format's functions.
"""

from __future__ import annotations

import pickletools
import struct
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

from tallystick.core.budget import Budget, current
from tallystick.errors import BadInput, quoted
from tallystick.formats.pickled.pickle_values import (
    Items,
    Make,
    Name,
    Ordered,
    Other,
    Unknown,
    key_of,
    made_tuple,
)
from tallystick.formats.pickled.strangers import Stranger, is_class, may_be_named

LARGEST = 16 << 20  # most bytes of a pickle; those of the largest shards have a few hundred thousand


def followed(
    stream: BytesIO,
    known: Mapping[str, Make],
    persistent: Callable[[Any], Any],
    strangers: dict[str, None] | None = None,
) -> Any:
    """Return the value of the next pickle in a stream, and leave the stream after it.

    Args:
        stream: the bytes, at most `LARGEST`.
        known: names that may be called, as module and name joined by a dot
            (``"collections.OrderedDict"``), and the functions for their arguments.
        persistent: returns the object of a persistent id.
        strangers: collects other names, whose objects become strangers; None refuses such names.

    Raises:
        BadInput: for any other name, a broken pickle, or an exceeded budget.
    """
    budget = current()
    machine = _Machine(known, persistent, budget, strangers)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            budget.step(2)
            machine.step(opcode.name, argument)
        return machine.stack.pop()
    except BadInput:
        raise
    except (IndexError, KeyError):
        raise BadInput("its pickle reads a value that it never created: it is broken", code="malformed") from None
    except (ValueError, OverflowError, struct.error, AttributeError, TypeError, Warning) as error:
        why = str(error).partition("\n")[0]
        raise BadInput(f"its pickle is truncated or broken: {why[:120]}", code="malformed") from None


class _Machine:
    """Stack and memo of a pickle."""

    def __init__(
        self,
        known: Mapping[str, Make],
        persistent: Callable[[Any], Any],
        budget: Budget,
        strangers: dict[str, None] | None,
    ) -> None:
        self.stack: list[Any] = []
        self._below: list[list[Any]] = []  # stacks below open marks
        self._memory: dict[int, Any] = {}
        self._known, self._persistent, self._strangers = known, persistent, strangers
        self._budget = budget

    def step(self, name: str, argument: Any) -> None:
        """Execute one step of the pickle."""
        if name in _PLAIN:
            if name == "SHORT_BINSTRING":  # a string of Python 2; torch reads it as UTF-8
                argument = argument.encode("latin-1").decode()
            if not isinstance(argument, int) or argument.bit_length() > 64:
                self._take(sys.getsizeof(argument))
            self.stack.append(argument)
        elif name in _READS:
            self.stack.append(self._memory[argument])
        elif name in _WRITES:
            self._take(100)
            self._memory[argument] = self.stack[-1]
        else:
            handler = _STEPS.get(name)
            if handler is None:
                raise BadInput(
                    f"its pickle uses the opcode {name}, which weights never need: nothing was run",
                    code="unsafe",
                )
            handler(self, argument)

    def _take(self, room: int) -> None:
        self._budget.keep(room, "the values of its pickle")

    def _marked(self) -> list[Any]:
        """Return the values pushed since the last mark."""
        items = self.stack
        self.stack = self._below.pop()
        return items

    def _new(self, value: Any, room: int) -> None:
        self._take(room)
        self.stack.append(value)

    # -- steps, by their names in pickletools -----------------------------------------------------

    def mark(self, _: None) -> None:
        self._take(64)
        self._below.append(self.stack)
        self.stack = []

    def memoize(self, _: None) -> None:
        self._take(100)
        self._memory[len(self._memory)] = self.stack[-1]

    def pop(self, _: None) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self._marked()

    def pop_mark(self, _: None) -> None:
        self._marked()

    def dup(self, _: None) -> None:
        self.stack.append(self.stack[-1])

    def constant(self, value: Any) -> None:
        self.stack.append(value)

    def tuple_(self, _: None) -> None:
        items = self._marked()
        self._new(made_tuple(items), 56 + 8 * len(items))

    def tuple_of(self, count: int) -> None:
        items = self.stack[-count:]
        if len(items) < count:
            raise IndexError
        del self.stack[-count:]
        self._new(made_tuple(items), 80)

    def empty_list(self, _: None) -> None:
        self._new([], 64)

    def list_(self, _: None) -> None:
        items = self._marked()
        self._new(items, 64 + 8 * len(items))

    def append(self, _: None) -> None:
        self._extend([self.stack.pop()], list)

    def appends(self, _: None) -> None:
        self._extend(self._marked(), list)

    def empty_set(self, _: None) -> None:
        self._new(Items(), 64)

    def add_items(self, _: None) -> None:
        self._extend(self._marked(), Items)

    def _extend(self, items: list[Any], kind: type[list[Any]]) -> None:
        self._take(10 * len(items))
        holder = self.stack[-1]
        if isinstance(holder, Stranger):
            holder = holder.listed
        elif type(holder) is not kind:
            raise BadInput("its pickle appends to something other than a list: it is broken", code="malformed")
        holder.extend(items)

    def empty_dict(self, _: None) -> None:
        self._new({}, 72)

    def dict_(self, _: None) -> None:
        items = self._marked()
        self.empty_dict(None)
        self._set(items)

    def set_item(self, _: None) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def set_items(self, _: None) -> None:
        self._set(self._marked())

    def _set(self, items: list[Any]) -> None:
        self._take(60 * len(items))
        top = self.stack[-1]
        holder = top.items if isinstance(top, Stranger) else top
        if isinstance(holder, dict):
            for key, value in zip(items[::2], items[1::2], strict=True):
                holder[key_of(key)] = value
        else:
            raise BadInput(
                "its pickle sets an item of something other than a dictionary: it is broken", code="malformed"
            )

    def global_(self, words: str) -> None:
        """Push a global. Its name may be of Python 2, as in protocol 2, with which torch saves."""
        module, name = words.split(" ", 1)
        self._name(*NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name)))

    def stack_global(self, _: None) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise BadInput("its pickle names a global by something other than text: it is broken", code="malformed")
        self._name(module, name)

    def _name(self, module: str, name: str) -> None:
        whole = f"{module}.{name}"
        make = self._known.get(whole)
        if make is not None:
            self._new(Name(whole, make), 64)
            return
        if self._strangers is None or not may_be_named(module, name):
            raise BadInput(
                f"its pickle names GLOBAL {_word(whole)}, which weights never need: nothing was run",
                code="unsafe",
            )
        self._take(100 + len(whole))
        self._strangers[whole] = None
        self._new(Unknown(whole), 64)

    def inst(self, words: str) -> None:
        arguments = tuple(self._marked())
        self.global_(words)
        self._reduce(self.stack.pop(), arguments)

    def obj(self, _: None) -> None:
        of, *arguments = self._marked()
        self._reduce(of, tuple(arguments))

    def reduce(self, _: None) -> None:
        arguments, of = self.stack.pop(), self.stack.pop()
        self._reduce(of, arguments)

    def _reduce(self, of: Any, arguments: Any) -> None:
        if isinstance(of, Unknown) and not is_class(of.name):
            raise BadInput(
                f"its pickle calls GLOBAL {_word(of.name)}, which is not a class: nothing was run", code="unsafe"
            )
        self._call(of, arguments)

    def new_object(self, _: None) -> None:
        arguments, of = self.stack.pop(), self.stack.pop()
        if isinstance(of, Name) and not isinstance(of, Unknown) and _is_function(of.name):
            raise BadInput(
                f"its pickle creates an object of {_word(of.name)}, which is not a class: it is broken",
                code="malformed",
            )
        self._call(of, arguments)
        if isinstance(self.stack[-1], Ordered):
            self.stack[-1] = Ordered()  # __new__ alone takes no items

    def new_object_with_keywords(self, _: None) -> None:
        keywords, arguments, of = self.stack.pop(), self.stack.pop(), self.stack.pop()
        if keywords and not isinstance(of, Unknown):
            raise BadInput("its pickle creates an object with keywords, which weights never need", code="unsafe")
        self._call(of, arguments)

    def _call(self, of: Any, arguments: Any) -> None:
        if not isinstance(of, Name) or not isinstance(arguments, tuple | list):
            raise BadInput("its pickle calls something other than a function: it is broken", code="malformed")
        self._new(of.make(tuple(arguments)), 120)

    def build(self, _: None) -> None:
        state, built = self.stack.pop(), self.stack[-1]
        if isinstance(built, Other | Stranger):
            built.state = state
        elif not isinstance(built, Ordered) or not isinstance(state, dict):
            raise BadInput("its pickle sets the state of a stateless object: it is broken", code="malformed")

    def persistent_id(self, _: None) -> None:
        self._new(self._persistent(self.stack.pop()), 120)

    def persistent_word(self, word: str) -> None:
        self._new(self._persistent(word), 120)

    def nothing(self, _: Any) -> None:
        pass


def _is_function(name: str) -> bool:
    """Return whether a known name is a function and not a class."""
    last = name.rpartition(".")[2]
    return last in ("encode", "scalar") or (last.startswith("_") and last.islower())


def _word(name: str) -> str:
    """Return a printable short name unchanged, any other quoted."""
    return name if name.isprintable() and len(name) <= 100 else quoted(name, most=100)


_PLAIN = frozenset(
    [
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "BYTEARRAY8",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "FLOAT",
        "BINFLOAT",
    ]
)
_READS = frozenset(("GET", "BINGET", "LONG_BINGET"))
_WRITES = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.mark,
    "MEMOIZE": _Machine.memoize,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": _Machine.dup,
    "NONE": lambda machine, _: machine.constant(None),
    "NEWTRUE": lambda machine, _: machine.constant(True),
    "NEWFALSE": lambda machine, _: machine.constant(False),
    "EMPTY_TUPLE": lambda machine, _: machine.constant(()),
    "TUPLE": _Machine.tuple_,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "EMPTY_LIST": _Machine.empty_list,
    "LIST": _Machine.list_,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "EMPTY_SET": _Machine.empty_set,
    "ADDITEMS": _Machine.add_items,
    "FROZENSET": _Machine.tuple_,
    "EMPTY_DICT": _Machine.empty_dict,
    "DICT": _Machine.dict_,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.global_,
    "STACK_GLOBAL": _Machine.stack_global,
    "INST": _Machine.inst,
    "OBJ": _Machine.obj,
    "NEWOBJ": _Machine.new_object,
    "NEWOBJ_EX": _Machine.new_object_with_keywords,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent_id,
    "PERSID": _Machine.persistent_word,
    "PROTO": _Machine.nothing,
    "FRAME": _Machine.nothing,
    "STOP": _Machine.nothing,
}
