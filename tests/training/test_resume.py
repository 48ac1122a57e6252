"""A run's folder may hold anything when a run goes on in it: one line, or an older checkpoint, and
nothing is executed.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from hostile import mutations, rewritten
from tallystick.errors import BadInput
from tallystick.training.checkpoints.checkpoint import checkpoints
from tallystick.training.corpus.token_files import HEADER
from tallystick.training.run import prepared
from tallystick.training.wholeness import WHOLE, seal
from training import small


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that has ended, with checkpoints of steps 2 and 4."""
    folder = tmp_path_factory.mktemp("made")
    config = small(folder, steps=4, save_every=2)
    run = prepared(config)
    list(run.events())
    run.close()
    return config


@pytest.fixture
def begun(made, tmp_path):
    """The same in a folder of its own."""
    shutil.copytree(made.out, tmp_path / "run")
    return replace(made, out=str(tmp_path / "run"))


def newest(config) -> Path:
    return Path(config.out) / "checkpoints" / "step-00000004"


def resumed(config) -> int | str:
    """The step that a run goes on at, or why it does not, in one line; another error fails the
    test.
    """
    try:
        run = prepared(config, resume="auto")
    except BadInput as error:
        line = str(error)
        assert line.isprintable()
        assert len(line) < 600 + 3 * len(config.out), line
        return line
    run.close()
    assert run.progress.step in (0, 2, 4)
    assert len(run.torn) == {4: 0, 2: 1, 0: 2}[run.progress.step]
    return run.progress.step


def sealed(folder: Path) -> None:
    """Give the files of a checkpoint the digests that they have now, as an attacker would."""
    (folder / WHOLE).unlink(missing_ok=True)
    seal(folder)


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


# -- tensors --------------------------------------------------------------------------------------


def state_of(config) -> Path:
    return next(newest(config).glob("state/*.safetensors"))


def metadata_of(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return file.metadata()


def rewrite_state(config, change):
    """Write the state anew with other tensors and slices, and give it the right digest."""
    path = state_of(config)
    tensors, metadata = load_file(path), metadata_of(path)
    slices = json.loads(metadata["DCP_SHARDING_INFO"])
    metadata["DCP_SHARDING_INFO"] = json.dumps(change(tensors, slices) or slices)
    save_file(tensors, path, metadata)
    sealed(newest(config))


NAME = "model.layers.0.attention.q_proj.weight"


def wide(tensors, slices):
    slices[NAME]["saved_offsets"] = [10**12, 0]


def beyond(tensors, slices):
    slices[NAME]["saved_offsets"] = [0, 10**40]


def negative(tensors, slices):
    slices[NAME]["saved_offsets"] = [-1, 0]


def many(tensors, slices):
    slices[NAME]["saved_offsets"] = [0] * 1000


def unsaid(tensors, slices):
    del slices[NAME]


def a_list(tensors, slices):
    return [1]


def cut(tensors, slices):
    tensors[NAME] = tensors[NAME][:5].clone()


def no_moment(tensors, slices):
    del tensors["optimizer.layers.0.attention.q_proj.weight.exp_avg"]


def one_more(tensors, slices):
    tensors["optimizer.layers.0.attention.q_proj.weight.more"] = torch.zeros(2)
    slices["optimizer.layers.0.attention.q_proj.weight.more"] = {"saved_offsets": [0]}


def scalar(tensors, slices):
    tensors[NAME] = torch.zeros(())
    slices[NAME] = {"saved_offsets": []}


def integers(tensors, slices):
    tensors[NAME] = tensors[NAME].to(torch.int64)


def of_nobody(tensors, slices):
    tensors["optimizer.a.b.exp_avg"] = torch.zeros(3)
    slices["optimizer.a.b.exp_avg"] = {"saved_offsets": [0]}


@pytest.mark.parametrize(
    "change",
    [wide, beyond, negative, many, unsaid, a_list, cut, no_moment, one_more, scalar, integers, of_nobody],
)
def test_tensors_that_are_not_those_of_the_run_are_refused(begun, change):
    rewrite_state(begun, change)
    assert isinstance(resumed(begun), str)


def test_a_state_is_refused_before_its_tensors_are_read(begun, monkeypatch):
    monkeypatch.setattr("tallystick.training.checkpoints.checkpoint.read_slices", None)
    for change in (wide, cut, no_moment, integers):
        rewrite_state(begun, change)
        assert isinstance(resumed(begun), str)


def test_any_state_and_random_numbers_with_the_right_digest_are_read(begun):
    for path in (state_of(begun), newest(begun) / "random-00000.safetensors"):
        content = path.read_bytes()
        length = 8 + int.from_bytes(content[:8], "little")
        for start in mutations(content[:length], most=20, by_commit=True):
            path.write_bytes(start + content[length:])
            sealed(newest(begun))
            resumed(begun)
        path.write_bytes(content)


def random_numbers(held):
    return {
        "none": {},
        "short": {"cpu": torch.zeros(3, dtype=torch.uint8)},
        "floats": {"cpu": torch.zeros(held["cpu"].shape)},
        "zeros": {"cpu": torch.zeros_like(held["cpu"])},
        "ones": {"cpu": torch.full_like(held["cpu"], 255)},
    }


@pytest.mark.parametrize("kind", ["none", "short", "floats", "zeros", "ones"])
def test_random_numbers_that_are_none_are_refused(begun, kind):
    path = newest(begun) / "random-00000.safetensors"
    save_file(random_numbers(load_file(path))[kind], path)
    sealed(newest(begun))
    assert isinstance(resumed(begun), str)


class Payload:
    """What runs as it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (str(self.canary),)


@pytest.mark.parametrize("name", [".metadata", "__0.metadata", "__0_0.distcp", "model.safetensors.index.json", "x.pt"])
@pytest.mark.parametrize("where", ["", "state"])
def test_no_pickle_in_a_checkpoint_is_read(begun, tmp_path, name, where):
    """torch.distributed.checkpoint unpickles `.metadata` where it reads files of its own; ours are
    safetensors.
    """
    canary = tmp_path / "canary"
    path = newest(begun) / where / name
    path.write_bytes(pickle.dumps(Payload(canary)))
    sealed(newest(begun))
    assert resumed(begun) == 4
    assert not canary.exists()
    pickle.loads(path.read_bytes())
    assert canary.exists()  # it would have been seen


def test_a_pickle_in_place_of_tensors_is_not_run(begun, tmp_path):
    canary = tmp_path / "canary"
    for path in (state_of(begun), newest(begun) / "random-00000.safetensors"):
        path.write_bytes(pickle.dumps(Payload(canary)))
        sealed(newest(begun))
        assert isinstance(resumed(begun), str)
    assert not canary.exists()


# -- tokens ---------------------------------------------------------------------------------------


def tokens_of(config) -> Path:
    return Path(config.out) / "data" / "train-00000.tokens"


def test_any_list_of_tokens_is_read(begun):
    path = Path(begun.out) / "data" / WHOLE
    document = json.loads(path.read_text())
    for content in (
        *rewritten(document, most=26, by_commit=True),
        *mutations(path.read_bytes(), most=33, by_commit=True),
    ):
        path.write_bytes(content)
        resumed(begun)


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../data/train-00000.tokens", "validation-00000.tokens", "train-0.tokens\0", "", 5, None, "."]
)
def test_files_of_tokens_elsewhere_are_not_opened(begun, name):
    path = Path(begun.out) / "data" / WHOLE
    said = json.loads(path.read_text())
    said["train"]["shards"][0][0] = name
    path.write_text(json.dumps(said))
    assert "was modified" in resumed(begun)


@pytest.mark.parametrize("dtype", ["O", "V1000000000", "<u8", "<f2", "u1", "|S99", "<M8[s]", ["<u2"], None, "<u4", 2])
def test_tokens_of_another_dtype_are_refused(begun, dtype):
    path = tokens_of(begun)
    content = path.read_bytes()
    header = {**json.loads(content[:HEADER]), "dtype": dtype}
    path.write_bytes(json.dumps(header).encode().ljust(HEADER) + content[HEADER:])
    assert "remove its folder" in resumed(begun)


@pytest.mark.parametrize("harm", ["pipe", "device", "link", "folder", "longer", "huge", "nested", "empty", "gone"])
def test_tokens_that_are_no_file_of_ours_are_refused(begun, harm):
    path = tokens_of(begun)
    content = path.read_bytes()
    path.unlink()
    match harm:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "link":
            path.with_name("other").write_bytes(content)
            path.symlink_to("other")
        case "folder":
            path.mkdir()
        case "longer":
            path.write_bytes(content + b"\0\0")
        case "huge":
            path.write_bytes(content)
            os.truncate(path, 1 << 40)
        case "nested":
            path.write_bytes(b"[" * HEADER + content[HEADER:])
        case "empty":
            path.write_bytes(b"")
    assert isinstance(resumed(begun), str)


def test_an_id_that_the_tokenizer_does_not_have_is_refused(begun):
    """With right digests everywhere: else it would be an index out of range in the embedding."""
    from hashlib import blake2b

    path, listing = tokens_of(begun), Path(begun.out) / "data" / WHOLE
    content = bytearray(path.read_bytes())
    content[-2:] = b"\xff\xff"
    path.write_bytes(content)
    said = json.loads(listing.read_text())
    said["train"]["shards"][0][2] = blake2b(content[HEADER:], digest_size=16).hexdigest()
    listing.write_text(json.dumps(said))
    assert "holds the id 65,535, but the tokenizer has 257 entries" in resumed(begun)


# -- data that changed between two runs -----------------------------------------------------------


@pytest.fixture
def with_texts(tmp_path):
    """A run that has ended, with its texts."""
    config = small(tmp_path, steps=4, save_every=2)
    run = prepared(config)
    list(run.events())
    run.close()
    return config, tmp_path / "texts"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda texts: (texts / "new.txt").write_text("new"), "it had 12 files of .* bytes, now 13 files of"),
        (lambda texts: (texts / "03.txt").unlink(), "it had 12 files of .* bytes, now 11 files of"),
        (lambda texts: (texts / "03.txt").rename(texts / "3.txt"), "it had 12 files"),
        (
            lambda texts: (texts / "03.txt").write_text((texts / "03.txt").read_text().swapcase()),
            "its files have the same names and sizes, but other content",
        ),
    ],
)  # fmt: skip
def test_texts_that_have_changed_are_refused_with_what_changed(with_texts, change, message):
    config, texts = with_texts
    change(texts)
    with pytest.raises(BadInput, match=f"texts has changed since the tokens in .* were made: {message}"):
        prepared(config, resume="auto")


def test_texts_with_other_times_are_the_same_and_texts_that_are_gone_are_not_needed(with_texts):
    config, texts = with_texts
    for path in texts.iterdir():
        os.utime(path, (0, 0))
    assert resumed(config) == 4
    shutil.rmtree(texts)
    assert resumed(config) == 4


def test_tokens_made_again_from_other_texts_are_not_those_of_the_run(with_texts):
    config, texts = with_texts
    (texts / "03.txt").write_text("other words")
    shutil.rmtree(Path(config.out) / "data")
    assert "is from a run on other data: the train tokens had" in resumed(config)


def test_a_checkpoint_of_a_version_that_did_not_say_its_data_is_gone_on_with(begun):
    path = newest(begun) / "progress.json"
    said = json.loads(path.read_text())
    del said["data"]
    path.write_text(json.dumps(said))
    sealed(newest(begun))
    listing = Path(begun.out) / "data" / WHOLE
    said = json.loads(listing.read_text())
    del said["texts"]
    listing.write_text(json.dumps(said))
    assert resumed(begun) == 4
