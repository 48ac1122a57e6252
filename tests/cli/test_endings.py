"""How a run of the command line ends, whatever happens to it: the right exit code, one line at
most, never a traceback.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rotating import some_by_commit, taken_by_commit
from tallystick.cli.commands import presets
from tallystick.cli.main import main
from tallystick.report.numbers import exact, giga, in_bytes, in_flops, in_giga, rough

WRONG = "Embedding: 50257 × 768 = 38,596,416"
DIGITS = 4000
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")


def run(*words, redirected="", **options):
    """The command in a process of its own, with a shell's redirection such as ``>&-``."""
    script = f'exec "$0" -m tallystick "$@" {redirected}'
    return subprocess.run(
        ["sh", "-c", script, sys.executable, *words], capture_output=True, text=True, check=False, **options
    )


def said(done, code=2):
    """The one line of a run that ended with this code, and without an answer."""
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done
    assert done.stderr.startswith("tallystick: ")
    return done.stderr


# -- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["count", "gpt2"], ["count", "gpt2", "--format", "json"], ["presets"], ["--version"], ["count", "--help"]],
    ids=" ".join,
)
@pytest.mark.parametrize("redirected", [">&-", pytest.param(">/dev/full", marks=needs_full)])
def test_an_answer_that_cannot_be_written_is_an_error(words, redirected):
    assert "standard output" in said(run(*words, redirected=redirected))


@needs_full
@pytest.mark.parametrize("words", [["count", "gpt2"], ["--help"]], ids=" ".join)
def test_an_unbuffered_answer_that_cannot_be_written_is_an_error(words):
    """Where each write reaches the system, argparse drops its error."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    assert "standard output could not be written: No space left on device" in said(
        run(*words, redirected=">/dev/full", env=environment)
    )


@pytest.mark.parametrize("redirected", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
def test_a_message_that_cannot_be_written_changes_nothing_else(redirected):
    done = run("count", "gpt2", redirected=redirected)
    assert (done.returncode, done.stderr) == (0, "")
    assert "124,439,808" in done.stdout
    done = run("count", "no-such-model", redirected=redirected)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_all_streams_closed():
    assert run("count", "gpt2", redirected="<&- >&- 2>&-").returncode == 2


@pytest.mark.usefixtures("preloaded")
def test_no_file_takes_the_number_of_a_closed_stream(tmp_path):
    """What a factory or a library writes to standard error would be written into that file."""
    (tmp_path / "mine.py").write_text(
        "import os\nfrom torch import nn\n"
        "def build():\n    with open('opened', 'w') as file:\n        assert file.fileno() > 2\n    return nn.Linear(1, 1)\n"
    )
    assert run("count", "mine:build", redirected="<&- 2>&-", cwd=tmp_path).returncode == 0


def test_a_closed_standard_input_is_said():
    assert "standard input is closed" in said(run("check", "-", redirected="<&-"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["count", "gpt2"], 0),
        (["count", "deepseek-v3", "--by", "tensor", "--format", "json"], 0),
        (["presets"], 0),
        (["--help"], 0),
        (["check", "wrong.md", "--against", "gpt2"], 1),
        (["fit", "gpt2-xl", "--device", "1GB"], 1),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_reader_that_left_is_no_error_and_a_failed_check_stays_one(words, code, tmp_path):
    (tmp_path / "wrong.md").write_text(WRONG, encoding="utf-8")
    reads, writes = os.pipe()
    os.close(reads)  # before anything is written
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *words], stdout=writes, stderr=subprocess.PIPE, check=False, cwd=tmp_path
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (code, b"")


# -- interrupts -----------------------------------------------------------------------------------

# Python runs it at its start: it sends SIGINT at one of the calls that are made from the package's
# first on.
INTERRUPTER = """\
import atexit, os, signal, sys
at, calls = int(os.environ["INTERRUPT_AT"]), 0
def look(frame, event, _):
    global calls
    if calls or frame.f_code.co_filename.endswith(os.path.join("tallystick", "startup.py")):
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGINT)
if at:
    sys.settrace(look)
else:
    sys.setprofile(lambda frame, event, given: look(frame, event, given) if event == "call" else None)
    atexit.register(lambda: open(os.environ["CALLS"], "w").write(str(calls)))
"""


def interrupted(at, *words, folder):
    (folder / "sitecustomize.py").write_text(INTERRUPTER)
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "INTERRUPT_AT": str(at), "CALLS": str(folder / "calls")}
    return run(*words, env=environment, cwd=folder)


# Tracing the import of torch takes seconds: one of three commits does, and each that changes what
# handles an interrupt.
IN_TORCH = taken_by_commit(
    "interrupts as torch is imported",
    3,
    [
        "src/tallystick/startup.py",
        "src/tallystick/unforeseen.py",
        "src/tallystick/cli/main.py",
        "tests/cli/test_endings.py",
    ],
)


@pytest.mark.parametrize(
    ("words", "points", "taken"),
    [(["count", "gpt2"], 24, 12), *([(["count", "mine:build"], 12, 3)] if IN_TORCH else [])],
    ids=["config", "factory"][: 1 + IN_TORCH],
)
def test_an_interrupt_at_any_moment(words, points, taken, tmp_path):
    """During the package's imports, argparse, the work, torch's imports, the writing. Where torch
    is imported, which takes seconds, at other points in each commit.
    """
    (tmp_path / "mine.py").write_text("from torch import nn\ndef build():\n    return nn.Linear(1, 1)\n")
    assert interrupted(0, *words, folder=tmp_path).returncode == 0
    calls = int((tmp_path / "calls").read_text())
    for point in some_by_commit(range(points), taken):
        # From the first call of all that is prepared; the last tenth is the end of the process,
        # when all is answered.
        at = 40 + point * (calls * 9 // 10) // points
        assert said(interrupted(at, *words, folder=tmp_path), 130) == "tallystick: interrupted\n", at


def test_an_interrupt_as_the_process_ends_leaves_no_traceback(tmp_path):
    assert interrupted(0, "count", "gpt2", folder=tmp_path).returncode == 0
    calls = int((tmp_path / "calls").read_text())
    for at in range(calls - 200, calls, 25):
        done = interrupted(at, "count", "gpt2", folder=tmp_path)
        assert (done.returncode, done.stderr) in [(0, ""), (130, "tallystick: interrupted\n")]
        assert "124,439,808" in done.stdout or done.returncode


def test_an_interrupt_of_a_page_that_is_served():
    command = [sys.executable, "-m", "tallystick", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline().startswith("http://127.0.0.1:")
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate()
    assert (server.returncode, errors) == (130, "tallystick: interrupted\n")


@pytest.mark.usefixtures("preloaded")
def test_an_ignored_interrupt_stays_ignored(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os, signal\nfrom torch import nn\n"
        "def build():\n    os.kill(os.getpid(), signal.SIGINT)\n    return nn.Linear(1, 1)\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'trap "" INT; exec "{sys.executable}" -m tallystick count mine:build'],
        capture_output=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


# -- what a factory raises ------------------------------------------------------------------------

MINE = """\
import os, signal, sys
class Mine(BaseException): pass
class Shy(Exception):
    def __str__(self): raise ValueError
def own(): raise Mine("of my own")
def shy(): raise Shy
def leaves(): sys.exit(0)
def words(): sys.exit("words")
def generator(): raise GeneratorExit
def memory(): raise MemoryError
def deep(): return deep()
def lines(): raise ValueError("two\\nlines \\x1b[31m" + "x" * 10_000)
def interrupt(): raise KeyboardInterrupt
def signalled(): os.kill(os.getpid(), signal.SIGINT)
def turned():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        raise ImportError("as C code makes of an interrupt")
def executed():
    exec("os.kill(os.getpid(), signal.SIGINT)\\nfor _ in range(9): pass")
class Dropped:
    def __del__(self): os.kill(os.getpid(), signal.SIGINT)
def dropped(): Dropped()
"""


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize("name", ["own", "shy", "leaves", "words", "generator", "memory", "deep", "lines"])
def test_whatever_a_factory_raises_is_one_line(name, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    line = said(run("count", f"mine:{name}", cwd=tmp_path))
    assert f"mine:{name} raised " in line
    assert "mine.py, line " in line
    assert len(line) < 600


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize("name", ["interrupt", "signalled", "turned", "executed", "dropped"])
def test_an_interrupt_in_a_factory_ends_the_run(name, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    assert said(run("count", f"mine:{name}", cwd=tmp_path), 130) == "tallystick: interrupted\n"


@pytest.mark.usefixtures("preloaded")
def test_what_a_module_raises_as_it_is_read_points_at_its_own_line(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\nclass Net(nn.Module):\n    def named_modules(self, *a, **k):\n        raise KeyError('mine')\n"
    )
    line = said(run("count", "mine:Net", cwd=tmp_path))
    assert "mine.py, line 4)" in line
    assert "bug" not in line


# -- a folder that is gone ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["count", "config.json"], ["count", "mine:build"], ["explore", "mine:build", "--no-browser"], ["survive"],
     ["train", "--set", "preset=nano"], ["check", "notes.md"]],
    ids=" ".join,
)  # fmt: skip
def test_a_current_folder_that_was_removed(words, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "../gone"; exec "$0" -m tallystick "$@"', sys.executable, *words],
        capture_output=True, text=True, check=False, cwd=gone,
    )  # fmt: skip
    line = said(done)
    assert "the current folder was removed" in line or words[-1] in line


def test_a_preset_needs_no_current_folder(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "../gone"; exec "$0" -m tallystick count gpt2'
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False, cwd=gone)
    assert (done.returncode, done.stderr) == (0, "")


# -- what nobody foresaw --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TypeError("two\nlines"), "this is a bug in tallystick: TypeError: two lines"),
        (AssertionError(), "this is a bug in tallystick: AssertionError"),
        (SystemExit(0), "this is a bug in tallystick: SystemExit: 0"),
        (GeneratorExit(), "this is a bug in tallystick: GeneratorExit"),
        (MemoryError(), "needs too much memory"),
        (OSError(12, "Cannot allocate memory"), "needs too much memory"),
        (RecursionError(), "nested too deeply"),
        (OSError(28, "No space left on device", "plot.svg"), "plot.svg: No space left on device"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_any_exception_is_one_line_and_never_a_success(error, words, monkeypatch, capsys):
    names = {"error": error}
    exec(compile("def raising(_): raise error", presets.__file__, "exec"), names)  # a line of the package's own
    monkeypatch.setattr(presets, "_run", names["raising"])
    monkeypatch.delenv("TALLYSTICK_TRACEBACK", raising=False)
    assert main(["presets"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("tallystick: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err
    monkeypatch.setenv("TALLYSTICK_TRACEBACK", "1")
    assert main(["presets"]) == 2
    assert capsys.readouterr().err.startswith("Traceback")


@pytest.mark.parametrize(
    "words",
    [
        ["memory", "gpt2", "--batch"], ["memory", "gpt2", "--sequence"], ["memory", "gpt2", "--lora"],
        ["memory", "gpt2", "--mode", "training", "--dp"], ["memory", "gpt2", "--zero"], ["memory", "gpt2", "--tp"],
        ["memory", "gpt2", "--device"], ["memory", "gpt2", "--dtype"], ["compute", "gpt2", "--batch"],
        ["compute", "gpt2", "--tokens"], ["compute", "gpt2", "--device", "h100", "--mfu"], ["reconcile", "gpt2"],
        ["reconcile", "gpt2", "124M", "--most"], ["fit", "gpt2", "--device", "8GB", "--batch"],
        ["explore", "--no-browser", "--port"], ["experiment", "tying", "--steps"], ["count"], ["count", "gpt2", "--format"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("number", ["9" * DIGITS, "9" * (DIGITS + 1000), "-" + "9" * DIGITS])
def test_a_number_of_thousands_of_digits_is_one_short_line(words, number, capsys):
    assert main([*words, number]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert len(captured.err) < 700
    assert "bug" not in captured.err


@pytest.mark.parametrize("key", ["n_layer", "n_embd", "vocab_size", "dtype", "tie_word_embeddings"])
@pytest.mark.parametrize("number", ["9" * DIGITS, "1e400", "NaN", "-Infinity"])
def test_a_key_that_is_set_to_no_size_is_one_short_line(key, number, capsys):
    assert main(["count", "gpt2", "--set", f"{key}={number}"]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert len(captured.err) < 300
    assert "bug" not in captured.err


def test_the_keys_of_a_training_run_are_numbers_that_can_be_computed_with(capsys):
    for key in ("steps", "batch", "learning_rate", "seed"):
        assert main(["train", "--set", f"{key}={'9' * DIGITS}"]) == 2
        assert "bits" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--batch", "--sequence"])
def test_the_largest_numbers_are_drawn(option, capsys):
    largest = str(2**63 - 1) if option == "--batch" else "999999999999"
    for words in (["memory", "llama-3-8b"], ["compute", "llama-3-8b"], ["fit", "llama-3-8b", "--device", "80GB"]):
        assert main([*words, option, largest]) in (0, 1), capsys.readouterr().err


def test_a_number_without_a_float_is_drawn_by_its_size():
    huge = 10**4000
    assert (exact(huge), exact(-huge), rough(huge)) == ("10^4000", "-10^4000", "10^3988T")
    assert (giga(huge), in_giga(huge)) == ("10^3991", "10^3991 GB (10^3990 GiB)")
    assert in_bytes(huge) == "10^3988 TB (10^3987 TiB)"
    assert in_flops(huge) == "10^3976 YFLOP"
