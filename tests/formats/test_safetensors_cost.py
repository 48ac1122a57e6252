"""What a safetensors header may cost: a few times its size in memory, whatever it claims."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from checkpoints import write, write_raw
from tallystick.errors import BadInput
from tallystick.formats.safetensors import LARGEST_HEADER, read_header

KILOBYTES = 200 * 1024
COSTLY = {
    "lists nested": "[" * KILOBYTES,
    "objects nested": '{"a":' * (KILOBYTES // 5),
    "a shape nested": '{"a":{"dtype":"U8","shape":' + "[" * KILOBYTES,
    "quotes": "{" + '"' * KILOBYTES,
    "backslashes": '{"' + "\\" * KILOBYTES,
    "escaped quotes": '{"' + '\\"' * (KILOBYTES // 2),
    "escapes in a name": '{"' + "\\u0041" * (KILOBYTES // 6) + '":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
    "commas": "{" + "," * KILOBYTES,
    "spaces": "{" + " " * KILOBYTES,
    "spaces in a tensor": '{"a":{' + " " * KILOBYTES + '"dtype"',
    "digits": '{"a":{"dtype":"U8","shape":[' + "1" * KILOBYTES,
    "sizes": '{"a":{"dtype":"U8","shape":[' + "1," * (KILOBYTES // 2) + '1],"data_offsets":[0,1]}}',
    "large sizes": '{"a":{"dtype":"U8","shape":['
    + "9999999999999999999," * (KILOBYTES // 20)
    + '9],"data_offsets":[]}}',
    "spaced sizes": '{"a":{"dtype":"U8","shape":[' + "1 , " * (KILOBYTES // 4) + "x",
    "offsets": '{"a":{"dtype":"U8","shape":[0],"data_offsets":[' + "0," * (KILOBYTES // 2) + "0]}}",
    "metadata": '{"__metadata__":{' + '"a":"b",' * (KILOBYTES // 8) + "}}",
    "fields": '{"a":{' + '"dtype":"U8",' * (KILOBYTES // 13) + "}}",
    "wide characters": '{"' + "😀" * (KILOBYTES // 4) + '":{}}',
}


@pytest.mark.parametrize("what", COSTLY)
def test_no_header_costs_more_than_a_few_times_its_size(tmp_path: Path, what: str):
    """And the scan comes to an end: a pattern that backtracks would be at it for years."""
    path = write_raw(tmp_path / "a.safetensors", COSTLY[what])
    tracemalloc.start()
    try:
        read_header(path)
    except BadInput:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 10 * path.stat().st_size + 64 * 1024


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(("{}", LARGEST_HEADER), id="a header of 100 MB"),
        pytest.param(("{}", 2**63), id="a header of 2^63 bytes"),
        pytest.param(({"a": {"dtype": "F64", "shape": [10**18], "data_offsets": [0, 8 * 10**18]}}, None), id="10^18"),
        pytest.param(({"a": {"dtype": "U8", "shape": [10**9] * 60, "data_offsets": [0, 0]}}, None), id="10^540"),
    ],
)
def test_a_claim_costs_nothing(tmp_path: Path, claim: tuple[Any, int | None]):
    path = write_raw(tmp_path / "a.safetensors", claim[0], length=claim[1])
    tracemalloc.start()
    try:
        with pytest.raises(BadInput):
            read_header(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 256 * 1024


def test_data_is_not_read(tmp_path: Path):
    path = write(tmp_path / "a.safetensors", {"a": (2**30,)})
    tracemalloc.start()
    try:
        read_header(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 256 * 1024
