"""`tallystick train` from the shell: what it says, leaves and refuses."""

import json
import shutil

import pytest

import tallystick
from tallystick.cli.main import main
from tallystick.report.charts import curves
from training import MODEL, text_in


def run_in(folder):
    """A config file, and the folder of its run."""
    keys = {
        "source": "llama", "data": str(text_in(folder)), "out": str(folder / "run"), "sequence": 16, "batch": 4,
        "steps": 4, "warmup": 1, "learning_rate": 1e-2, "eval_every": 2, "eval_batches": 2, "save_every": 2, "log_every": 2, "device": "cpu",
    }  # fmt: skip
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    model = [f"{key} = {json.dumps(value)}" for key, value in MODEL.items()]
    path = folder / "run.toml"
    path.write_text("\n".join([*lines, "[model]", *model]) + "\n")
    return path, folder / "run"


@pytest.fixture
def told(tmp_path):
    """A config file, and the folder of the run, which is still to come."""
    return run_in(tmp_path)


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Curves, which take half a second, are drawn for the first run and where a test sees them."""
    if request.node.originalname != "test_it_says_what_it_will_do_and_what_came_of_it":
        monkeypatch.setattr(curves, "_drawn", lambda log: {"png": b"a picture", "svg": b"<svg></svg>"})


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    path, out = run_in(tmp_path_factory.mktemp("trained"))
    assert main(["train", "--config", str(path)]) == 0
    shutil.copytree(out, out.with_name("kept"), symlinks=True)
    return path, out


@pytest.fixture
def trained(trained_once):
    """A config file, and the folder of the run as it was left at its end."""
    path, out = trained_once
    shutil.rmtree(out)
    shutil.copytree(out.with_name("kept"), out, symlinks=True)
    return path, out


def test_it_says_what_it_will_do_and_what_came_of_it(told, capsys):
    path, out = told
    assert main(["train", "--config", str(path)]) == 0
    said = capsys.readouterr().out
    ledger = tallystick.count({"model_type": "llama", "vocab_size": 257, **MODEL})
    assert f"{ledger.total:,} parameters" in said
    assert "tied: embedding.weight = head.weight" in said
    assert "step 4: validation loss" in said
    assert f"the model is in {out / 'model'}" in said
    assert tallystick.count(out / "model").total == ledger.total
    assert {path.name for path in out.iterdir()} == {
        "checkpoints",
        "data",
        "log.jsonl",
        "model",
        "report.html",
        "report.png",
    }
    kinds = [(line["kind"], line["step"]) for line in map(json.loads, (out / "log.jsonl").read_text().splitlines())]
    assert kinds[-3:] == [("evaluated", 4), ("saved", 4), ("done", 4)]


def test_json_gives_the_plan_and_the_outcome(told, capsys):
    path, out = told
    assert main(["train", "--config", str(path), "--set", "steps=2", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "done"
    assert found["step"] == 2
    assert found["plan"]["parameters"] == tallystick.count(out / "model").total
    assert found["plan"]["predicted_bytes"] > 0


def test_it_goes_on_where_the_checkpoint_stands(trained, capsys):
    path, out = trained
    first = (out / "model" / "model.safetensors").read_bytes()
    capsys.readouterr()
    assert main(["train", "--config", str(path), "--resume", str(out / "checkpoints" / "step-00000002")]) == 0
    assert "resumes after step 2 of 4" in capsys.readouterr().out
    assert (out / "model" / "model.safetensors").read_bytes() == first
    steps = [
        line["step"] for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if line["kind"] == "step"
    ]
    assert steps == [2, 4]


def test_a_runs_folder_is_its_model_as_soon_as_there_is_one(trained, capsys):
    _, out = trained
    assert tallystick.count(out).total == tallystick.count(out / "model").total
    assert main(["generate", str(out), "--prompt", "tally", "--tokens", "1"]) == 0
    capsys.readouterr()
    checkpoint = out / "checkpoints" / "step-00000004"
    shutil.rmtree(out / "model")
    for command, named, message in (
        ("count", out, f"{out} is an unfinished run, which will write its model to {out / 'model'}: resume it"),
        ("generate", out, f"{out} is an unfinished run"),
        ("count", checkpoint, f"is a checkpoint for resuming; the run's model will be in {out / 'model'}"),
    ):
        assert main([command, str(named)]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


def test_a_model_that_was_trained_is_trained_further(told, capsys, tmp_path):
    path, out = told
    main(["train", "--config", str(path), "--set", "steps=12"])
    capsys.readouterr()
    tuned = tmp_path / "tuned.toml"
    keys = {
        "source": str(out / "model"),
        "pretrained": True,
        "data": str(tmp_path / "texts"),
        "out": str(tmp_path / "tuned"),
    }
    more = {
        "sequence": 16,
        "batch": 4,
        "steps": 1,
        "device": "cpu",
        "eval_every": 0,
        "learning_rate": 1e-9,
        "warmup": 0,
    }
    tuned.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in {**keys, **more}.items()))
    assert main(["train", "--config", str(tuned), "--format", "json"]) == 0
    last = [line for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if line["kind"] == "step"][
        -1
    ]
    found = json.loads(capsys.readouterr().out)
    assert found["loss"] == pytest.approx(last["loss"], abs=0.2)  # and not that of new weights, which is 5.5
    assert last["loss"] < 5


@pytest.mark.parametrize(
    "damage", [b"\xff", b"5", b"{}", b'{"kind": "step", "step": 1}', b"[" * 100_000, b"9" * 2_000_000]
)
def test_a_damaged_log_is_said_and_gone_on_with(trained, capsys, damage):
    path, out = trained
    before = (out / "log.jsonl").read_bytes()
    (out / "log.jsonl").write_bytes(damage + b"\n" + before + b'{"kind": "st')
    capsys.readouterr()
    assert main(["train", "--config", str(path), "--resume", "auto"]) == 0
    said = capsys.readouterr()
    assert "log.jsonl: line 1 is damaged and was skipped" in "".join(said.out.split("\n"))
    assert said.err == ""
    assert (out / "log.jsonl").read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("log.jsonl", "is not a regular file"),
        ("checkpoints/step-00000004/whole.json", ""),
        ("checkpoints/step-00000004/progress.json", ""),
        ("checkpoints/step-00000004/state", ""),
        ("data/whole.json", "is not a regular file"),
        ("data/tokenizer.json", "is not a regular file"),
        (".lock", "is not a regular file: remove it"),
        ("model", ""),
        (".log.jsonl.partial", ""),
        (".report.png.partial", ""),
        ("report.png", ""),
    ],
)
def test_a_link_to_a_device_anywhere_in_a_run_is_one_line_or_an_older_checkpoint(trained, capsys, name, message):
    path, out = trained
    shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink(missing_ok=True)
    (out / name).symlink_to("/dev/zero")
    capsys.readouterr()
    code = main(["train", "--config", str(path), "--resume", "auto"])
    said = capsys.readouterr()
    assert code == (2 if message else 0)
    assert message in said.err
    assert said.err.count("\n") == (1 if message else 0)
    if name.startswith("checkpoints"):
        assert "step-00000004 is incomplete and was not used" in "".join(said.out.split("\n"))
        assert "resumes after step 2 of 4" in said.out


def test_no_link_in_a_run_is_written_through(trained, tmp_path):
    path, out = trained
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name in (".log.jsonl.partial", ".report.png.partial", ".report.html.partial", "log.jsonl", "report.png"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(mine)
    assert main(["train", "--config", str(path), "--resume", "auto"]) == 0
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["stepz=3"], "unknown key 'stepz'; nearest: steps"),
        (["batch=0"], "batch is 0, expected 1 or more"),
        (["model.hidden_siz=3"], "has no key 'hidden_siz' to set; nearest: hidden_size"),
    ],
)
def test_bad_input_is_one_line(told, capsys, settings, message):
    assert main(["train", "--config", str(told[0]), "--set", *settings]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_run_that_diverges_ends_with_one(told, capsys):
    assert main(["train", "--config", str(told[0]), "--set", "learning_rate=1e30", "clip=0", "steps=9"]) == 1
    assert "is not finite" in capsys.readouterr().err
