"""The machine that follows pickles, against Python's own and against pickles that would harm who
ran them.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import pickle
import pickletools
import struct
import subprocess
import tracemalloc
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotating import drawn_by_commit, half_by_commit
from tallystick import BadInput
from tallystick.core import budget
from tallystick.formats.pickled.pickle_values import Name, Other
from tallystick.formats.pickled.pickles import LARGEST, followed
from tallystick.formats.pickled.torch_calls import KNOWN


def follow(content: bytes) -> Any:
    def no_memory(_: Any) -> Any:
        raise BadInput("it asks for memory")

    return followed(BytesIO(content), KNOWN, no_memory)


def refused(content: bytes) -> str:
    with pytest.raises(BadInput) as caught:
        follow(content)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    return str(caught.value)


PLAIN = {
    "numbers": [0, 1, -1, 255, 65536, 2**40, -(2**70), 2**3000, 1.5, -0.0, True, False, None],
    "text": ["", "wte.weight", "größe 😀", "x" * 300, b"", b"bytes", b"x" * 300],
    "nested": {"a": {"b": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]}, "": [[], {}]},
    "again": [[same := ["shared"], same], (same, same)],
    "ordered": collections.OrderedDict(a=1, b=collections.OrderedDict()),
}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("what", PLAIN)
def test_plain_values_are_those_that_python_makes_of_them(what: str, protocol: int):
    if what == "text" and protocol < 3:  # bytes were calls then
        values = [value for value in PLAIN[what] if isinstance(value, str)]
    else:
        values = PLAIN[what]
    content = pickle.dumps(values, protocol)
    assert follow(content) == pickle.loads(content) == values
    assert follow(pickletools.optimize(content)) == values


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=300),
    lambda parts: st.lists(parts) | st.tuples(parts, parts) | st.dictionaries(st.text() | st.integers(0, 99), parts),
    max_leaves=12,
)


@drawn_by_commit(70)
@given(values, st.integers(3, 5))
def test_whatever_plain_values_are_drawn(value: Any, protocol: int):
    assert follow(pickle.dumps(value, protocol)) == value


def test_what_holds_itself_is_followed():
    holder: list[Any] = []
    holder.append(holder)
    found = follow(pickle.dumps(holder))
    assert found[0] is found


def test_what_is_known_and_of_no_interest_is_noted():
    found = follow(pickle.dumps({"when": datetime.timedelta(1), "kinds": {1}}, 2))
    assert isinstance(found["when"], Other)
    assert found["when"].name == "datetime.timedelta"


class Call:
    """Pickled as a call of anything."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


HARMFUL = {
    "system": (os.system, "touch sprung"),
    "eval": (eval, "open('sprung', 'w')"),
    "exec": (exec, "open('sprung', 'w')"),
    "getattr": (getattr, os, "system"),
    "popen": (subprocess.Popen, "touch sprung"),
    "an import": (__import__, "antigravity"),
    "a pickle in a pickle": (pickle.loads, pickle.dumps(Call(os.system, "touch sprung"))),
}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("what", [name for name in HARMFUL if name != "getattr"])
def test_what_it_would_run_is_named_and_not_run(tmp_path, monkeypatch, what: str, protocol: int):
    monkeypatch.chdir(tmp_path)
    function, *arguments = HARMFUL[what]
    for value in (Call(function, *arguments), {"a": [Call(function, *arguments)]}):
        line = refused(pickle.dumps(value, protocol))
        assert "names GLOBAL " in line
        assert function.__name__ in line
        assert "nothing was run" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"cos\nsystem\n(S'touch sprung'\ntR.", "GLOBAL os.system"),
        (b"(S'touch sprung'\nios\nsystem\n.", "GLOBAL os.system"),
        (b"(cos\nsystem\nS'touch sprung'\no.", "GLOBAL os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.", "GLOBAL os.system"),
        (
            b"\x80\x02ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
            "GLOBAL torch._utils._rebuild_tensor_v2.__globals__",
        ),
        (b"\x80\x02ctorch\nload\n.", "GLOBAL torch.load"),
        (b"\x80\x02ctorch.storage\n_load_from_bytes\n.", "GLOBAL torch.storage._load_from_bytes"),
        (b"\x80\x02cbuiltins\ngetattr\n.", "GLOBAL builtins.getattr"),
        (b"c\x1b[2Jos\nsystem\n.", r"GLOBAL '\x1b[2Jos.system'"),
        (b"\x82\x01.", "the opcode EXT1"),
        (b"\x97.", "the opcode NEXT_BUFFER"),
        (b"\x80\x02ctorch\nfloat32\n)R.", "is not a function"),
        (b"\x80\x02]K\x01\x85R.", "calls something other than a function"),
        (b"\x80\x02ccollections\nOrderedDict\nK\x01R.", "calls something other than a function"),
    ],
)
def test_each_way_to_name_or_call_is_refused_by_name(content: bytes, word: str):
    assert word in refused(content)


def test_only_a_name_that_is_listed_whole_is_known():
    assert isinstance(follow(b"\x80\x02ctorch\nfloat32\n."), Name)
    assert "GLOBAL torch.float33" in refused(b"\x80\x02ctorch\nfloat33\n.")


@pytest.mark.parametrize(
    "content",
    [
        b"", b".", b"K", b"K\x01", b"(", b"0.", b"1.", b"t.", b"R.", b"a.", b"s.", b"u.", b"e.", b"b.", b"h\x00.", b"g9\n.",
        b"\x94.", b"\x85.", b"K\x01\x87.", b"]K\x01u.", b"}(K\x01u.", b"K\x01K\x02a.", b"K\x01K\x02K\x03s.", b"Q.", b"Pkey\n.",
        b"\xff", b"I1e9\n.", b"X\xff\xff\xff\xff.", b"X\x02\x00\x00\x00\xff\xff.", b"\x8d" + b"\xff" * 8 + b".", b"V\\u\n.",
        b"\x8b\xff\xff\xff\x7f.", b"\x8b\xff\xff\xff\xff.", b"I" + b"9" * 10_000 + b"\n.", b"L" + b"9" * 10_000 + b"L\n.",
        b"S'open\n.", b"cos\n", b"c\n\n.", b"\x93.", b"K\x01K\x02\x93.", b"\x81.", b"\x92.", b"}}}\x92.",
    ],
)  # fmt: skip
def test_what_is_no_pickle_is_refused(content: bytes):
    assert "it" in refused(content)


DOUBLED = b"\x80\x04)\x94" + b"".join(b"h%c" % n * 2 + b"\x86\x94" for n in range(200))
BOMBS = {
    "a key of tuples of tuples": DOUBLED + b"}h\xc8K\x01s.",
    "a key of tuples one in the other": b"\x80\x04)" + b"\x85" * 200_000 + b"}2K\x01s.",
    "tuples": b"\x80\x04)" + b"\x85" * 200_000 + b".",
    "lists": b"\x80\x04" + b"]" * 200_000 + b".",
    "sets": b"\x80\x04" + b"\x8f" * 200_000 + b".",
    "dictionaries": b"\x80\x04" + b"}" * 200_000 + b".",
    "marks": b"\x80\x04" + b"(" * 200_000 + b".",
    "memories": b"\x80\x04N" + b"\x94" * 200_000 + b".",
    "far memories": b"\x80\x04N"
    + b"".join(b"r" + (2**32 - 1 - n).to_bytes(4, "little") for n in range(200_000))
    + b".",
    "steps": b"\x80\x04" + b"N0" * 200_000 + b".",
    "long integers": b"\x80\x04" + (b"\x8a\xff" + b"\x01" * 255 + b"0") * 100_000 + b".",
    "integers that hash alike": b"\x80\x02}("
    + b"".join(b"\x8a\x0a" + (n * (2**61 - 1)).to_bytes(10, "little") + b"N" for n in range(1, 60_000))
    + b"u.",
}


@pytest.mark.parametrize("what", half_by_commit(BOMBS, "src/tallystick/formats/"))
def test_a_short_pickle_takes_no_more_room_than_is_allowed(monkeypatch, what: str):
    """With a part of the room and of the steps, which is as much as a test has time for."""
    monkeypatch.setattr(budget, "ROOM", 8_000_000)
    monkeypatch.setattr(budget, "STEPS", 800_000)
    assert room_for(BOMBS[what]) < 20_000_000


def test_steps_without_end_and_room_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(budget, "STEPS", 1000)
    assert refused(BOMBS["steps"]) == "reading it takes more than 1,000 steps"
    monkeypatch.setattr(budget, "STEPS", 10**9)
    monkeypatch.setattr(budget, "ROOM", 10_000)
    assert refused(BOMBS["tuples"]) == "the values of its pickle would take more than 10,000 bytes of memory"


def test_a_text_of_wide_letters_takes_what_it_may():
    letters = LARGEST - 24
    content = b"\x80\x04X" + struct.pack("<I", letters + 4) + "😀".encode() + b"a" * letters + b"."
    assert room_for(content) < 200_000_000


def room_for(content: bytes) -> int:
    """The most bytes that are taken while a pickle is followed or refused."""
    tracemalloc.start()
    try:
        with contextlib.suppress(BadInput):
            follow(content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
