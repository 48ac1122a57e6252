"""The forks that tests start in place of Python do what Python does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.usefixtures("preloaded"),
    pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone"),
]


def run(*words, **options):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)


def test_torch_is_there_and_tallystick_is_not():
    code = "import sys; print('torch' in sys.modules, any(name.startswith('tallystick') for name in sys.modules))"
    assert run("-c", code).stdout == "True False\n"


def test_its_streams_are_its_own(tmp_path):
    """A file and a pipe: what the forked process printed to is at most one of the two."""
    code = "import sys; sys.stdout.reconfigure(errors='replace'); print(sys.stdout.seekable())"
    assert run("-c", code).stdout == "False\n"
    with (tmp_path / "said").open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "said").read_text() == "True\n"


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('why')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import atexit; atexit.register(print, 'last')", 0),
    ],
)
def test_it_ends_as_python_does(code, ended):
    done = run("-c", code)
    assert done.returncode == ended
    assert done.stdout == ("last\n" if "last" in code else "")
    assert ("ZeroDivisionError" in done.stderr) == ("/" in code)


def test_folder_words_environment_and_descriptors_are_its_own(tmp_path):
    reads, writes = os.pipe()
    code = f"import os, sys; os.write({writes}, os.getcwd().encode()); print(sys.argv[1:], os.environ['MINE'], input())"
    done = run("-c", code, "a", "b", cwd=tmp_path, env={**os.environ, "MINE": "x"}, pass_fds=[writes], input="given\n")
    os.close(writes)
    with open(reads) as said:
        assert said.read() == str(tmp_path)
    assert done.stdout == "['a', 'b'] x given\n"


def test_a_limit_of_time_is_its_own():
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 2))"
    code = f"{limit}; import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'while True: pass'])"
    assert run("-c", code).returncode == -signal.SIGXCPU


def test_the_hubs_folder_is_the_environments(tmp_path):
    code = "from huggingface_hub import constants; print(constants.HF_TOKEN_PATH)"
    done = run("-c", code, env={**os.environ, "HF_HOME": str(tmp_path)})
    assert done.stdout == f"{tmp_path / 'token'}\n"


def test_a_module_and_a_script_are_found_as_python_finds_them(tmp_path):
    (tmp_path / "mine.py").write_text("import sys\nif __name__ == '__main__': print(sys.argv[0].endswith('mine.py'))\n")
    (tmp_path / "script.py").write_text("import mine, sys; print(__file__, sys.argv[1:])\n")
    assert run("-m", "mine", cwd=tmp_path).stdout == "True\n"
    assert run("-P", "-c", "import mine", cwd=tmp_path).returncode == 1
    assert run(str(tmp_path / "script.py"), "a").stdout == f"{tmp_path / 'script.py'} ['a']\n"


def test_signals_reach_it_and_it_ends_with_the_one_that_asked():
    code = "import time; print('ready', flush=True); time.sleep(60)"
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.send_signal(number)
            assert process.wait() == -number
    holding = "import os; print(os.getpid(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        fork = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        assert process.stdout.read() == b""  # which the fork had open until it ended
    os.close(fork)


def test_another_setting_of_the_interpreter_is_left_to_python():
    done = run("-c", "import sys; print('torch' in sys.modules)", env={**os.environ, "PYTHONUTF8": "1"})
    assert done.stdout == "False\n"
    assert run("-I", "-c", "import sys; print('torch' in sys.modules)").stdout == "False\n"
