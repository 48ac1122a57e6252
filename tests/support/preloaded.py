"""Python with torch and transformers imported: each process is a fork of one that imported them.

To import transformers' models takes five seconds of CPU, and many tests start processes that do.
`Preloaded` starts one process that imports them at the first request, and writes an executable
that takes Python's own arguments (`preloaded_client.py`), to stand in `sys.executable`. It asks for
a fork, gives it its folder, environment, limits and descriptors, hands on signals, and ends as the
fork ends; who kills it kills the fork. Nothing of tallystick is imported before a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import logging
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

PYTHON = "PRELOADED_PYTHON"  # the environment variable of a test run that holds the executable's path
# What the processes import; none of these starts a thread.
MODULES = (
    "numpy", "safetensors.torch", "torch", "torch.distributed.fsdp", "torch.distributed.tensor",
    "torch.distributed.checkpoint", "transformers.modeling_utils", "transformers.models.auto.modeling_auto",
)  # fmt: skip
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "USE_HUB_KERNELS": "0"}
# What the interpreter reads as it starts: a request with others is run by Python itself.
SETTINGS = (
    "LANG", "LC_ALL", "LC_CTYPE", "PYTHONCOERCECLOCALE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8",
    "PYTHONUNBUFFERED", "PYTHONWARNINGS", "PYTHONSAFEPATH",
)  # fmt: skip
SECONDS = 20  # between two looks whether the test run is still there
HIGH = 500  # above any number that a request gives a descriptor


class Preloaded:
    """The process that is forked, until it is closed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="preloaded-")
        address = os.path.join(self._folder.name, "socket")
        self.executable = os.path.join(self._folder.name, "python")
        client = Path(__file__).with_name("preloaded_client.py").read_text(encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        settings = {name: environment.get(name) for name in SETTINGS}
        given = f"ADDRESS, REAL, SETTINGS = {address!r}, {sys.executable!r}, {settings!r}"
        Path(self.executable).write_text(f"#!{sys.executable} -IS\n{given}\n{client}", encoding="utf-8")
        os.chmod(self.executable, 0o755)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listening.fileno()), self.executable],
                pass_fds=[listening.fileno()],
                env={**environment, **OFFLINE},
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for pytest, which ends it
            )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


class Request:
    """What an executable asked for, and the descriptors that it gave."""

    def __init__(self, connection: socket.socket) -> None:
        length, self._given, _, _ = socket.recv_fds(connection, 8, HIGH, socket.MSG_WAITALL)
        self.said: dict[str, Any] = json.loads(connection.recv(int.from_bytes(length), socket.MSG_WAITALL))

    def close(self) -> None:
        for descriptor in self._given:
            os.close(descriptor)

    def take_over(self, executable: str) -> None:
        """Make this process what the executable's own was."""
        import resource  # on Linux, where alone processes are forked: any system imports this file

        said = self.said
        given = [os.dup2(descriptor, HIGH + place) for place, descriptor in enumerate(self._given)]
        self.close()
        os.fchdir(given[0])
        for number in {0, 1, 2} - set(said["descriptors"]):
            os.close(number)
        for number, descriptor in zip(said["descriptors"], given[1:], strict=True):
            os.dup2(descriptor, number)
        for descriptor in given:
            os.close(descriptor)
        os.setsid()
        os.umask(said["umask"])
        for name in said["ignored"]:
            signal.signal(name, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, said["masked"])
        os.environ.clear()
        os.environ.update(said["environment"])
        for kind, limits in said["limits"]:
            resource.setrlimit(kind, limits)
        sys.executable = executable
        _as_at_start()


def _as_at_start() -> None:
    """Forget what the forked process would have found out for itself."""
    torch = sys.modules["torch"]
    threads = int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))
    if threads != torch.get_num_threads():
        torch.set_num_threads(threads)
    random.seed()
    tempfile.tempdir = None
    importlib.reload(sys.modules["huggingface_hub.constants"])  # folders that the environment names
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, getattr(sys, name))
        setattr(sys, name, stream), setattr(sys, f"__{name}__", stream)


def _stream(number: int, before: Any) -> Any:
    """Open a descriptor as Python does; None if it is closed.

    The stream from before the fork remembers what its descriptor was: a file, whose place it asks.
    """
    try:
        os.fstat(number)
    except OSError:
        return None
    raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115 # as long as the process
    return io.TextIOWrapper(raw, before.encoding, before.errors, line_buffering=number == 2 or raw.isatty())


def run(words: list[str]) -> None:
    """Run what Python's arguments say, as the module ``__main__``."""
    safe, kind, words = _options(words)
    first = os.path.dirname(os.path.realpath(words[0])) if kind == "file" else "" if kind == "-c" else os.getcwd()
    around = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*([] if safe else [first]), *around, *sys.path]
    sys.path_importer_cache.clear()
    if around:
        with suppress(ModuleNotFoundError):
            importlib.import_module("sitecustomize")
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if kind == "-m":
        sys.argv[:] = ["-m", *words[1:]]
        runpy._run_module_as_main(words[0])
    elif kind == "-c":
        sys.argv[:] = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv[:] = words
        main.__dict__["__file__"] = words[0]
        exec(compile(Path(words[0]).read_bytes(), words[0], "exec"), main.__dict__)


def end(code: object) -> None:
    """End as Python does, but free no memory: a fork would copy each page of it first."""
    if isinstance(code, int | None):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with suppress(OSError, ValueError):  # which Python itself reports
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            os._exit((code or 0) & 0xFF)
    sys.exit(code)  # type: ignore[arg-type]


def _options(words: list[str]) -> tuple[bool, str, list[str]]:
    """Whether the current folder is left out, what is run, and its words."""
    safe = False
    while words[0].startswith("-") and words[0] not in ("-c", "-m"):
        option, *words = words
        if option == "-P":
            safe = True
        elif option == "-W":  # the client lets no other through that matters
            warned, *words = words
            sys.warnoptions.append(warned)
            warnings._processoptions([warned])  # type: ignore[attr-defined]
    return (safe, words[0], words[1:]) if words[0] in ("-c", "-m") else (safe, "file", words)


def serve(listening: socket.socket) -> Request:
    """Fork at each request, and return in the fork."""
    ready, parent = False, os.getppid()
    running: dict[int, tuple[int, socket.socket]] = {}  # by a descriptor of the process: it, and who asked
    while True:
        asking = {connection.fileno(): process for process, connection in running.values()}
        waiting = select.select([listening, *running, *asking], [], [], SECONDS)[0]
        if os.getppid() != parent:  # the test run was killed
            sys.exit()
        for source in waiting:
            if source is listening:
                connection = listening.accept()[0]
                try:
                    request = Request(connection)
                except (OSError, ValueError):  # killed before it had asked
                    connection.close()
                    continue
                ready = ready or preload()
                if not (process := os.fork()):
                    for descriptor, (_, other) in running.items():
                        os.close(descriptor), other.close()
                    connection.close(), listening.close()
                    return request
                request.close()
                running[os.pidfd_open(process)] = process, connection
            elif source in running:
                process, connection = running.pop(source)
                del asking[connection.fileno()]
                os.close(source)
                status = os.waitpid(process, 0)[1]
                with suppress(OSError), connection:
                    connection.send(status.to_bytes(4))
            elif source in asking:
                _hand_on(source, asking[source])


def _hand_on(source: int, process: int) -> None:
    """Send a process the signal that came, or end it where the one that asked has ended."""
    name = os.read(source, 1)
    os.kill(process, name[0] if name else signal.SIGKILL)


def preload() -> bool:
    logging.disable()  # of what torchao lacks
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        for name in MODULES:
            importlib.import_module(name)
    logging.disable(logging.NOTSET)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    return True


if __name__ == "__main__":
    number, executable = sys.argv[1:]
    asked = serve(socket.socket(fileno=int(number)))
    asked.take_over(executable)
    code: object = None
    try:
        run(asked.said["words"])
    except SystemExit as exit_:
        code = exit_.code
    end(code)
