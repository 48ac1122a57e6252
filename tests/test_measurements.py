"""The committed figures: a wrong one is found, a stale file is measured anew, and what stands in a
file is of its versions and code.
"""

import json

import pytest

import measurements
from measurements import FILES, SHARE, anew, code, key_of, load, measured, sealed, versions, written

NAMES = sorted(path.stem for path in FILES.glob("*.json"))
PINNED = dict(
    line.split("==") for line in (FILES.parent.parent / "constraints.txt").read_text().splitlines() if "==" in line
)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty folder of files, a commit of which nothing has changed, and one function that is
    measured.
    """
    (tmp_path / "support").mkdir()
    (tmp_path / "support" / "toys.py").write_text("import torch\ndef doubled(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path / "support")
    monkeypatch.setattr(measurements, "TESTS", tmp_path)
    monkeypatch.setattr(measurements, "FILES", tmp_path)
    monkeypatch.setattr(measurements, "MODE", "")
    monkeypatch.setattr(measurements, "DRAWN_ANEW", False)
    monkeypatch.setattr(measurements, "git", lambda *asked: "" if asked[0] == "diff" else "a tree")
    monkeypatch.setattr(measurements, "taken", measurements.taken.__class__())
    monkeypatch.setattr(measurements, "new", {})

    def write(values, **other):
        text = written("toys", {"toys:doubled": {key_of("toys:doubled", (x,), {}): y for x, y in values.items()}})
        (tmp_path / "toys.json").write_text(json.dumps({**json.loads(text), **other}))
        forget()

    yield write
    forget()


def forget():
    for cached in (measurements.load, measurements.why, measurements.seed):
        cached.cache_clear()


def outcomes(numbers):
    """What is said of each: the value, or that the committed one is wrong."""
    said = []
    for x in numbers:
        try:
            said.append(measured("toys:doubled", x))
        except AssertionError as error:
            said.append("wrong" if "measured now" in str(error) else error)
    return said


def test_a_sixth_is_measured_anew_and_a_wrong_value_of_it_is_found(store, monkeypatch):
    store(dict.fromkeys(range(600), 1))
    said = outcomes(range(600))
    assert set(said) == {1, "wrong"}
    assert 60 < said.count("wrong") < 140
    assert outcomes(range(600)) == said  # of one commit always the same
    measurements.seed.cache_clear()
    monkeypatch.setattr(measurements, "git", lambda *asked: "" if asked[0] == "diff" else "another tree")
    assert outcomes(range(600)) != said


@pytest.mark.parametrize(
    "other",
    [
        {"versions": {"torch": "1.0"}},
        {"code": "of another file"},
        {"digest": "of other values"},
    ],
    ids=list("vcd"),
)
def test_of_other_versions_of_other_code_or_changed_by_hand_all_is_measured(store, other):
    store(dict.fromkeys(range(50), 1), **other)
    assert outcomes(range(50)) == ["wrong"] * 50


def test_what_the_last_commit_changed_is_measured(store, monkeypatch):
    store(dict.fromkeys(range(50), 1))
    for said in ("tests/measured/toys.json", None):  # None: there is no commit before
        monkeypatch.setattr(measurements, "git", lambda *asked, said=said: said)
        measurements.why.cache_clear()
        assert outcomes(range(50)) == ["wrong"] * 50


def test_what_the_measuring_code_imports_is_part_of_it(store, tmp_path):
    before = code("toys")
    (tmp_path / "support" / "toys.py").write_text("import torch\nfrom other import x\n")
    (tmp_path / "support" / "other.py").write_text("x = 1\n")
    between = code("toys")
    (tmp_path / "support" / "other.py").write_text("x = 2\n")
    assert len({before, between, code("toys")}) == 3


def test_what_is_lacking_is_measured_and_said(store, monkeypatch):
    store({3: 6})
    assert outcomes([3, 4]) == [6, 8]
    assert measurements.summary(measurements.taken)[0].endswith("; it lacks 1: make measure")
    monkeypatch.setattr(measurements, "MODE", "none")
    with pytest.raises(AssertionError, match=r"lacks toys:doubled .* make measure"):
        measured("toys:doubled", 4)


def test_what_is_written_is_what_was_asked_and_of_a_stale_file_all_is_measured(store, tmp_path, monkeypatch):
    monkeypatch.setattr(measurements, "MODE", "write")
    for header, kept in (({}, 7), ({"code": "of another file"}, 6)):
        store({3: 7, 9: 18}, **header)
        measurements.new.clear()
        assert outcomes([3, 4]) == [kept, 8]
        measurements.write()
        forget()
        assert sorted(load("toys")["values"]["toys:doubled"].values()) == [kept, 8]
    monkeypatch.setattr(measurements, "MODE", "")
    assert measurements.why("toys") == ""


# -- the files that are committed -----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_of_the_pinned_versions_and_of_the_code_that_measures(name):
    """Else each run measures all of it: `make measure` writes it again."""
    header = load(name)
    assert header["versions"] == {package: PINNED[package] for package in header["versions"]}
    assert header["code"] == code(name)
    assert header["digest"] == sealed(header["values"])


def test_the_files_are_small():
    sizes = {path.name: path.stat().st_size for path in FILES.glob("*.json")}
    assert sizes
    assert max(sizes.values()) < 1_000_000
    assert sum(sizes.values()) < 3_000_000


def test_a_value_is_measured_anew_by_its_key_alone(monkeypatch):
    monkeypatch.setattr(measurements, "MODE", "")
    monkeypatch.setattr(measurements, "why", lambda name: "")
    chosen = sum(anew("truth", f"llama {number}") for number in range(6000))
    assert abs(chosen - 6000 / SHARE) < 120


def test_the_versions_are_those_that_are_pinned_or_installed():
    assert set(versions()) <= set(PINNED)
