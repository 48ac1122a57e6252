"""Links and what is no regular file, in a checkpoint's folder and in the path of its fixed copy."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import tallystick
from checkpoints import write
from killed_checkpoint import checkpoint
from tallystick import BadInput
from tallystick.cli.main import main
from tallystick.files import regular
from tallystick.sources.checkpoint import repair

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes as POSIX has them")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return checkpoint(tmp_path / "ck")


def state(folder: Path) -> dict[str, object]:
    """All that lies around a folder, by what would change if something were written."""
    return {
        str(path): os.readlink(path) if path.is_symlink() else (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in [folder.parent, *folder.parent.rglob("*")]
    }


def refused(folder: Path, out: str | Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a copy is refused; nothing is written."""
    before = state(folder)
    assert main(["ties", str(folder), "--fix", str(out), "--as", "tied"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert state(folder) == before
    return said.err.removeprefix("tallystick: ").strip()


def fixed(folder: Path, out: Path) -> dict[str, bytes]:
    """The files of a copy, which must hold no links."""
    assert main(["ties", str(folder), "--fix", str(out), "--as", "tied"]) == 0
    assert not any(path.is_symlink() for path in out.rglob("*"))
    assert tallystick.ties(out).problems == ()
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


# -- where the copy is to be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "out",
    ["link/o", "../place/ck/o", "link/sub/o", "ck/sub/../o", "ck/./o", "ck/sub/o", "ck", "link", "link/", "ck/sub/.."],
)
def test_a_copy_inside_the_folder_is_refused_however_it_is_named(tmp_path, monkeypatch, capsys, out):
    (tmp_path / "place").mkdir()
    folder = checkpoint(tmp_path / "place" / "ck")
    (tmp_path / "place" / "link").symlink_to("ck")
    monkeypatch.chdir(tmp_path / "place")
    assert refused(folder, out, capsys).endswith("name a folder outside it")


def test_a_folder_that_is_named_through_a_link_is_the_same(folder, capsys):
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert "name a folder outside it" in refused(link, folder / "o", capsys)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("", "exists and is not overwritten"),
        ("..", "exists and is not overwritten"),
        ("nowhere/o", "/nowhere is not a folder: create it"),
        ("file/o", "/file is not a folder: create it"),
        ("nowhere/../o", "/nowhere/.. is not a folder: create it"),
        ("dangling", "dangling already exists and is not overwritten"),
        ("file", "file already exists and is not overwritten"),
        ("n" * 300, "could not be written: File name too long"),
    ],
)
def test_a_place_that_cannot_be(folder, monkeypatch, capsys, out, said):
    (folder.parent / "file").write_text("")
    (folder.parent / "dangling").symlink_to("nothing")
    monkeypatch.chdir(folder.parent)
    assert said in refused(folder, out, capsys)


def test_a_long_name_that_the_disk_takes(folder):
    assert fixed(folder, folder.with_name("é" * 120))


def test_what_takes_the_name_meanwhile_stays(folder, capsys, monkeypatch):
    out = folder.with_name("out")

    def late(*arguments):
        out.mkdir()
        write_config(*arguments)

    write_config = repair._write_config
    monkeypatch.setattr(repair, "_write_config", lambda *rest, **more: (out.mkdir(), write_config(*rest, **more)))
    assert main(["ties", str(folder), "--fix", str(out), "--as", "tied"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert sorted(os.listdir(folder.parent)) == ["ck", "out"]
    assert os.listdir(out) == []


# -- what is in the folder ------------------------------------------------------------------------

OUTSIDE = "outside the folder, which is not followed: replace the link by the file, or remove it"
LINKS = {
    "a device": ("/dev/zero", f"holds 'x', a link to '/dev/zero' {OUTSIDE}"),
    "a file outside": ("../secret", f"holds 'x', a link to '../secret' {OUTSIDE}"),
    "a folder outside": ("/etc", f"holds 'x', a link to '/etc' {OUTSIDE}"),
    "itself": ("x", "holds 'x', a link to 'x', which is another link"),
    "a loop": ("y", "holds 'x', a link to 'y', which is another link"),
    "the folder": (".", "holds 'x', a link to '.', which is a folder"),
    "the folder above": ("..", f"holds 'x', a link to '..' {OUTSIDE}"),
    "a folder in it": ("sub", "holds 'x', a link to 'sub', which is a folder"),
    "out and in again": ("../ck/../secret", OUTSIDE),
    "nothing": ("nothing", "holds 'x', a link to 'nothing', which does not exist"),
    "out through a link": ("y/secret", f"holds 'x', a link to 'y/secret' {OUTSIDE}"),
    "a blob of no cache": ("../../blobs/" + "0" * 64, OUTSIDE),
    "a name that is long": ("../" + "n" * 200, OUTSIDE),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_that_is_not_followed_is_named(folder, capsys, name):
    target, said = LINKS[name]
    (folder.parent / "secret").write_text("secret")
    (folder / "x").symlink_to(target)
    if name == "a loop":
        (folder / "y").symlink_to("x")
    if name == "out through a link":
        (folder / "y").symlink_to("..")
    line = refused(folder, folder.with_name("out"), capsys)
    assert said in line
    assert len(line) < len(str(folder)) + 200


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_link_outside_of_what_is_read_is_not_followed_either(folder, capsys, name):
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(f"../{name}")
    assert OUTSIDE in refused(folder, folder.with_name("out"), capsys)


def test_a_pipe_and_a_socket_are_named(folder, monkeypatch, capsys):
    os.mkfifo(folder / "sub" / "pipe")
    said = refused(folder, folder.with_name("out"), capsys)
    assert said.endswith("holds 'sub/pipe', which is a pipe: remove it from the folder (only regular files are copied)")
    os.unlink(folder / "sub" / "pipe")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        assert "holds 's', which is a socket" in refused(folder, folder.with_name("out"), capsys)


def test_a_link_to_a_file_in_the_folder_becomes_that_file(folder):
    (folder / "again.txt").symlink_to("sub/notes.txt")
    (folder / "absolute.txt").symlink_to(folder / "sub" / "notes.txt")
    (folder / "model.safetensors").rename(folder / "sub" / "weights")
    (folder / "model.safetensors").symlink_to("sub/weights")
    found = fixed(folder, folder.with_name("out"))
    assert found["again.txt"] == found["absolute.txt"] == b"kept"
    assert len(found["model.safetensors"]) < len(found["sub/weights"])  # the head is left out of the first


def cached(tmp_path: Path) -> Path:
    """A snapshot as Hugging Face's cache has it."""
    folder = checkpoint(tmp_path / "hub" / "models--org--name" / "snapshots" / "0123abc")
    blobs = folder.parent.parent / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        path.rename(blobs / f"{number:064}")
        path.symlink_to(os.path.relpath(blobs / f"{number:064}", path.parent))
    return folder


def test_a_snapshot_of_the_cache_is_copied_as_files(tmp_path):
    folder = cached(tmp_path)
    assert tallystick.count(folder).total == tallystick.count(folder / "model.safetensors").total
    found = fixed(folder, tmp_path / "out")
    assert found["sub/notes.txt"] == b"kept"
    assert found.keys() == {"config.json", "model.safetensors", "sub/notes.txt"}
    link = tmp_path / "model"
    link.symlink_to(folder)
    assert fixed(link, tmp_path / "again") == found


def test_the_library_lays_its_cache_out_so(tmp_path):
    """The links are those that huggingface_hub itself makes."""
    file_download = pytest.importorskip("huggingface_hub.file_download")
    folder = checkpoint(tmp_path / "models--org--name" / "snapshots" / "0123abc")
    blob = folder.parent.parent / "blobs" / ("a" * 40)
    blob.parent.mkdir()
    (folder / "sub" / "notes.txt").rename(blob)
    file_download._create_symlink(str(blob), str(folder / "sub" / "notes.txt"), new_blob=False)
    assert (folder / "sub" / "notes.txt").is_symlink()
    assert fixed(folder, tmp_path / "out")["sub/notes.txt"] == b"kept"


@pytest.mark.parametrize(
    "target", ["../../refs/main", "../../blobs/../secret", "../../../secret", "../other/config.json"]
)
def test_of_a_cache_nothing_but_blobs_is_read(tmp_path, capsys, target):
    folder = cached(tmp_path)
    (folder / "x").symlink_to(target)
    assert OUTSIDE in refused(folder, tmp_path / "out", capsys)


def test_a_blob_that_is_itself_a_link_is_not_followed(tmp_path, capsys):
    folder = cached(tmp_path)
    (folder.parent.parent / "blobs" / "b").symlink_to("/etc/hostname")
    (folder / "x").symlink_to("../../blobs/b")
    assert "'../../blobs/b', which is another link" in refused(folder, tmp_path / "out", capsys)


# -- what changes meanwhile -----------------------------------------------------------------------


def swap_for_a_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("/etc/hostname")


def swap_for_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def swap_its_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    other = path.parent.parent.parent / "other"
    other.mkdir()
    (other / path.name).write_text("secret")
    path.parent.symlink_to(other)


def write_to(path: Path) -> None:
    path.write_text("longer")


def write_the_same_length(path: Path) -> None:
    path.write_text("KEPT")


@pytest.mark.parametrize(
    "change", [swap_for_a_link, swap_for_a_pipe, swap_its_folder, write_to, write_the_same_length, Path.unlink]
)
def test_a_file_that_is_changed_between_the_look_and_the_copy(folder, monkeypatch, capsys, change):
    list_regular = regular.list_regular
    done = []

    def listed(where):
        found = list_regular(where)
        if not done:
            done.append(change(folder / "sub" / "notes.txt"))
        return found

    monkeypatch.setattr(repair, "list_regular", listed)
    assert main(["ties", str(folder), "--fix", str(folder.with_name("out")), "--as", "tied"]) == 2
    error = capsys.readouterr().err
    assert "changed while it was copied" in error or "'sub/notes.txt' cannot be read" in error
    assert error.count("\n") == 1
    assert not any(path.name.startswith((".out", "out")) for path in folder.parent.iterdir())


def test_a_file_that_is_changed_after_it_was_copied(folder, monkeypatch, capsys):
    write_config = repair._write_config

    def late(*rest, **more):
        write(folder / "another.safetensors", {"a": (1,)})
        write_config(*rest, **more)

    monkeypatch.setattr(repair, "_write_config", late)
    assert main(["ties", str(folder), "--fix", str(folder.with_name("out")), "--as", "tied"]) == 2
    assert "changed while it was copied: try again when nothing writes to it" in capsys.readouterr().err
    assert os.listdir(folder.parent) == ["ck"]


def test_permissions_that_forbid_writing_are_given_last(folder):
    (folder / "config.json").chmod(0o444)
    (folder / "sub" / "notes.txt").chmod(0o6755)
    (folder / "sub").chmod(0o555)
    folder.chmod(0o555)
    out = folder.with_name("out")
    fixed(folder, out)
    modes = {name: (out / name).stat().st_mode & 0o7777 for name in ("", "config.json", "sub", "sub/notes.txt")}
    assert modes == {"": 0o555, "config.json": 0o444, "sub": 0o555, "sub/notes.txt": 0o755}


def test_a_listing_reads_nothing(folder, monkeypatch):
    monkeypatch.setattr(os, "open", lambda *_, **__: pytest.fail("a file was opened"))
    assert regular.list_regular(folder).files.keys() == {"config.json", "model.safetensors", "sub/notes.txt"}


def test_a_file_that_is_gone_is_one_line(folder):
    listing = regular.list_regular(folder)
    (folder / "config.json").unlink()
    with pytest.raises(BadInput, match=r"'config\.json' cannot be read: No such file or directory"):
        listing.open("config.json")


@pytest.mark.parametrize("change", [write_to, write_the_same_length])
def test_a_file_that_is_not_the_one_that_was_listed_is_not_read(folder, change):
    listing = regular.list_regular(folder)
    change(folder / "sub" / "notes.txt")
    with pytest.raises(BadInput, match="changed while it was copied"):
        listing.open("sub/notes.txt")


@pytest.mark.parametrize("change", [swap_for_a_link, swap_its_folder])
def test_a_link_that_takes_the_place_of_a_file_is_not_opened(folder, change):
    listing = regular.list_regular(folder)
    change(folder / "sub" / "notes.txt")
    with pytest.raises(BadInput, match=r"cannot be read: (Too many levels of symbolic links|Not a directory)"):
        listing.open("sub/notes.txt")
