"""vLLM's rules, judged by its own logs: `tests/support/engine_logs.py` says which rows judge."""

import pytest

from engine_logs import errors_of, plan, rows
from tallystick import BadInput
from tallystick.answers.devices import device_of
from tallystick.runtimes.engines import Card, Settings
from tallystick.runtimes.vllm import defaults
from tallystick.runtimes.vllm.cuda_graphs import captured
from tallystick.runtimes.vllm.pages import Kind, kinds_of, pool_of
from tallystick.runtimes.vllm.versions import release_of

ROWS = rows("vllm")


@pytest.fixture(scope="module")
def errors():
    return errors_of(ROWS)


@pytest.mark.parametrize(
    ("what", "within", "share"),
    [
        ("weights_gib", 0.01, 0.98),
        ("activations_gib", 0.1, 0.9),
        ("kv_gib", 0.02, 0.93),  # beyond it are rows of 0.20 and 0.22, and one of -1.44 GiB
        ("kv_tokens", 0.01, 0.88),
        ("kv_tokens", 0.02, 0.93),
        ("concurrency", 0.02, 0.94),
    ],
)
def test_the_logs_that_no_constant_was_read_from_agree(errors, what, within, share):
    found = errors[what]
    far = [f"line {one.row.number}: {one.row.model} {one.error:+.2%}" for one in found if abs(one.error) > within]
    assert 1 - len(far) / len(found) >= share, far


def test_activations_agree_in_each_version(errors):
    versions = {}
    for one in errors["activations_gib"]:
        versions.setdefault(one.row.version, []).append(abs(one.error) <= 0.1)
    many = {version: near for version, near in versions.items() if len(near) > 1}
    assert {"0.6.5", "0.8", "0.16", "0.19"} <= many.keys()
    assert {version: near for version, near in many.items() if sum(near) < 0.9 * len(near)} == {}


@pytest.mark.parametrize("row", [row for row in ROWS if row.starts is not None], ids=lambda row: f"line{row.number}")
def test_it_starts_or_not_as_the_log_says(row):
    assert plan(row).starts == row.starts


def test_the_rows_are_many_and_of_many_models():
    assert len(ROWS) >= 60
    assert len({row.preset for row in ROWS if row.judges}) >= 15
    assert {row.preset for row in ROWS if not row.judges} == {"llama-3.1-8b", "qwen3-14b", "gpt-oss-20b", "qwen3.5-27b"}


def test_the_smaller_kind_of_layers_sets_the_groups():
    pool = pool_of([Kind(8, 8192), Kind(40, 8192, window=1024)])  # Gemma 3 12B: one to five
    assert (pool.size, len(pool.groups), pool.padding) == (8, 6, 0)
    assert pool.needed(8192, 8192) == 512 + 5 * 513  # a window reads the tokens of a step, and may begin within a page
    assert pool.tokens(48867, 8192, 8192, by_concurrency=False) == 130304  # the log of gemma-3-12b-it


def test_kinds_of_almost_equal_number_are_padded_to_the_larger():
    pool = pool_of([Kind(13, 2048), Kind(12, 2048, window=128)])  # gpt-oss-20b with an EAGLE layer
    assert (pool.size, len(pool.groups), pool.padding) == (13, 2, 1)


def test_attention_pages_grow_to_the_size_of_a_recurrent_state():
    # Qwen3.5-27B in vllm-project/vllm#40691: 290,864 tokens, and 33.04 requests of 32,768.
    state = 10240 * 3 * 2 + 48 * 128 * 128 * 4
    pool = pool_of([Kind(16, 4096), Kind(48, 0, state=state)])
    assert {one.block for one in pool.groups} == {784}
    assert pool.tokens(1487, 32768, 2048, by_concurrency=False) == 290864
    assert round(1487 / pool.needed(32768, 2048), 2) == 33.04
    # Newer releases print the product of the two.
    assert pool.tokens(1487, 32768, 2048, by_concurrency=True) == int(1487 / 45 * 32768)


def test_smaller_pages_hold_more_tokens():
    pool = pool_of([Kind(10, 4096), Kind(50, 8192, window=1024)])
    assert {(one.window, one.block) for one in pool.groups} == {(None, 32), (1024, 16)}
    assert pool.page == 16 * 8192


def test_layers_of_one_kind_may_differ_in_size():
    pool = pool_of([Kind(2, 100), Kind(3, 60)])
    assert pool.uniform
    assert pool.block_bytes == 16 * (2 * 100 + 3 * 60)


def test_without_layers_there_is_no_pool():
    assert pool_of(kinds_of([], [], width=2)) is None


@pytest.mark.parametrize(
    ("name", "batched", "requests"), [("h100", 8192, 1024), ("a100-80gb", 2048, 256), ("l4", 2048, 256)]
)
def test_defaults_depend_on_the_device(name, batched, requests):
    device = device_of(name)
    found = defaults(Settings(), Card(device.name, device.memory))
    assert found == {"max_num_batched_tokens": batched, "max_num_seqs": requests}


def test_a_step_bounds_the_requests():
    assert defaults(Settings(max_num_batched_tokens=64), Card("h100", 2**36))["max_num_seqs"] == 64


def test_graphs_as_the_log_counts_them():
    assert captured(1024) == (51, 51)
    assert captured(256) == (51, 35)
    assert captured(16) == (7, 5)  # up to 32 tokens piecewise, up to 16 requests whole


@pytest.mark.parametrize(
    ("version", "of"), [("0.19", "0.18"), ("v0.19.1", "0.18"), ("0.12.0rc1", "0.11"), (None, "0.18")]
)
def test_a_version_has_the_constants_of_the_last_change_before_it(version, of):
    assert release_of(version).version == of


@pytest.mark.parametrize("version", ["0.5", "new", "1", ""])
def test_an_unknown_version_is_refused(version):
    if not version:
        assert release_of(version).version == "0.18"
        return
    with pytest.raises(BadInput, match="version"):
        release_of(version)


@pytest.mark.parametrize(
    ("version", "name", "length", "batched"),
    [
        ("0.6", "h100", 8192, 8192),  # V0: a step holds a whole prompt
        ("0.6", "h100", 131_072, 2048),  # or a part of a long one
        ("0.9", "t4", 8192, 8192),
        ("0.9", "l4", 8192, 2048),
        ("0.19", "t4", 8192, 2048),
    ],
)
def test_steps_of_the_engine_v0(version, name, length, batched):
    device = device_of(name)
    found = defaults(Settings(version=version, max_model_len=length), Card(device.name, device.memory))
    assert found["max_num_batched_tokens"] == batched
