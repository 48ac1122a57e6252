"""A checkpoint's folder may hold anything when a run goes on: one line, or an older checkpoint."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hostile import mutations, rewritten
from resumed_runs import begun, made, newest, resumed, sealed
from tallystick.errors import BadInput
from tallystick.training.checkpoints.checkpoint import checkpoints
from tallystick.training.run import prepared
from tallystick.training.wholeness import WHOLE

__all__ = ["begun", "made"]  # fixtures

# -- names in whole.json --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "/dev/zero", "/dev/stdin", "../step-00000002/progress.json", "state/../progress.json", "./progress.json", "", ".", "..",
        "a\0b", "state", "/etc/passwd", "state/", "x" * 5000, "\ud800", "state\\shard", "state//a", "~/a", "a/b/c",
    ],
)  # fmt: skip
def test_names_that_are_no_files_of_the_folder_are_not_opened(begun, name):
    path = newest(begun) / WHOLE
    path.write_text(json.dumps({**json.loads(path.read_text()), name: "x"}))
    assert resumed(begun) == 2


@pytest.mark.parametrize("kind", ["link", "link to a device", "pipe", "folder", "link of the folder", "loop", "hard"])
@pytest.mark.parametrize("name", ["state", "progress.json", "random-00000.safetensors", WHOLE, "state/shard"])
def test_only_regular_files_are_read(begun, kind, name):
    """A second name of the same file is a regular file."""
    path = next(newest(begun).glob("state/shard*")) if name == "state/shard" else newest(begun) / name
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    match kind:
        case "link" | "link of the folder":
            path.symlink_to(elsewhere)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "hard" if elsewhere.is_dir():
            pytest.skip("a folder has one name")
        case "hard":
            path.hardlink_to(elsewhere)
    assert resumed(begun) == (4 if kind == "hard" else 2)


@pytest.mark.parametrize("name", ["state/more.safetensors", "random-00001.safetensors", "state/.hidden.safetensors"])
def test_a_file_that_is_not_named_is_not_read(begun, name):
    shutil.copy(newest(begun) / "random-00000.safetensors", newest(begun) / name)
    assert resumed(begun) == 2


def test_what_a_desktop_leaves_in_a_folder_is_no_harm(begun):
    (newest(begun) / ".DS_Store").write_bytes(b"\0")
    (newest(begun) / "state" / "Thumbs.db").write_bytes(b"\0")
    assert resumed(begun) == 4


def test_a_checkpoint_under_the_name_of_another_step_is_not_the_newest(begun):
    shutil.copytree(newest(begun), newest(begun).with_name("step-00000099"))
    run = prepared(begun, resume="auto")
    assert run.progress.step == 4
    assert run.torn == [newest(begun).with_name("step-00000099")]


@pytest.mark.parametrize("name", ["step-best", "step-00000004.bak", "step-9", "step-٠٠٠٠٠٠٠٩", "step-00000004 (copy)"])
def test_other_folders_are_neither_read_nor_removed(begun, name):
    other = newest(begun).with_name(name)
    shutil.copytree(newest(begun), other)
    shutil.rmtree(newest(begun))
    run = prepared(replace(begun, keep=1), resume="auto")
    assert run.progress.step == 2
    list(run.events())
    assert sorted(path.name for path in other.parent.iterdir()) == sorted([name, "step-00000004"])


def test_the_newest_is_the_one_with_the_highest_step_whatever_its_digits_and_its_time(begun):
    folder = newest(begun).parent
    os.utime(newest(begun), (0, 0))
    assert resumed(begun) == 4
    (folder / "step-100000000").mkdir()
    (folder / "step-99999999").mkdir()
    assert [path.name for path in checkpoints(Path(begun.out))][:2] == ["step-100000000", "step-99999999"]


def test_a_torn_checkpoint_of_a_later_step_does_not_push_out_the_one_that_is_written(begun):
    (newest(begun) / "progress.json").write_text("{}")
    run = prepared(replace(begun, keep=1, save_every=1), resume="auto")
    events = run.events()
    while next(events).kind != "saved":
        pass
    assert [path.name for path in checkpoints(Path(begun.out))] == ["step-00000004", "step-00000003"]


# -- damaged and hostile files --------------------------------------------------------------------


def test_any_list_of_digests_is_read(begun):
    path = newest(begun) / WHOLE
    document = json.loads(path.read_text())
    seen = set()
    for content in (
        *rewritten(document, most=20, by_commit=True),
        *mutations(path.read_bytes(), most=20, by_commit=True),
    ):
        path.write_bytes(content)
        seen.add(resumed(begun))
    assert seen <= {2, 4}


def test_any_progress_with_the_right_digest_is_read(begun):
    path = newest(begun) / "progress.json"
    document = json.loads(path.read_text())
    contents = [b"{}", b"[]", b"5", b"null", b'"a"', b"", b"\xff\xfe", *rewritten(document, most=20, by_commit=True)]
    for content in (*contents, *mutations(path.read_bytes(), most=20, by_commit=True)):
        path.write_bytes(content)
        sealed(newest(begun))
        resumed(begun)


@pytest.mark.parametrize("step", [0, -1, 3, 5, 10**9, 10**40, 4.0, True, "4", None, [4]])
def test_a_step_that_cannot_be_is_not_gone_on_with(begun, step):
    path = newest(begun) / "progress.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "step": step}))
    sealed(newest(begun))
    assert resumed(begun) == 2


def test_a_checkpoint_that_the_user_names_may_have_any_name_and_no_step_beyond_the_last(begun):
    path = newest(begun) / "progress.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "step": 3}))
    sealed(newest(begun))
    run = prepared(begun, resume=str(newest(begun)))
    assert run.progress.step == 3
    path.write_text(json.dumps({**json.loads(path.read_text()), "step": 5}))
    sealed(newest(begun))
    with pytest.raises(BadInput, match="step-00000004 is at step 5, but the run has 4 steps"):
        prepared(begun, resume=str(newest(begun)))


def test_a_config_with_other_values_is_shown_in_short(begun):
    path = newest(begun) / "progress.json"
    said = json.loads(path.read_text())
    said["config"]["k\n" * 2000] = "v" * 100_000
    path.write_text(json.dumps(said))
    sealed(newest(begun))
    assert "is from a run with" in resumed(begun)


def test_any_log_is_gone_on_with_or_refused_in_a_line(begun):
    path = Path(begun.out) / "log.jsonl"
    lines = [
        {"kind": "step", "step": 2, "loss": 5.0, "norm": 1.0, "rate": 0.1, "speed": 9.0},
        {"kind": "saved", "step": 2},
    ]
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    changed = (line.replace(b"\n", b" ") for line in rewritten(lines[0], most=33, by_commit=True))
    for damaged in (*mutations(content, most=33, by_commit=True), *(line + b"\n" + content for line in changed)):
        path.write_bytes(damaged)
        assert resumed(begun) == 4
