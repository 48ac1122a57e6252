"""Run transformers' builds in a sealed subprocess with time and memory limits.

A config may come from anywhere, and transformers trusts it. It asks on the terminal whether to run
remote code, asks the hub for files that a key names, and builds any size. The subprocess has no
terminal and no network, and an endless build is killed with it.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO, cast

from tallystick.errors import BadInput, shown
from tallystick.isolation.limits import limit_cpu, limit_memory, no_core_dump
from tallystick.isolation.pipes import receive, send, take_over
from tallystick.isolation.sealed import Refused, current_folder, seal

SECONDS = 10  # CPU time for one model; the largest published one takes some six
WAIT = 120  # seconds of wall time for one model, on a busy machine
IDLE = 120  # seconds without a question before the process ends, to free its memory
MEMORY = 1_000_000_000  # bytes in total; importing transformers takes 400 million

# The subprocess reaches neither the hub nor a registry of kernels.
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "USE_HUB_KERNELS": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Cache folders of libraries; the subprocess may write nowhere else.
_FOLDERS = ("TMPDIR", "HF_HOME", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def ask(question: str, **arguments: Any) -> Any:
    """Call a function of `build` in the subprocess and return its result.

    Args:
        question: the function's name, ``knows`` or ``build``.
        arguments: its keyword arguments, as JSON could hold them.

    Raises:
        BadInput: if the function raises it, exceeds the time or memory limit, or tries to reach
            out.
    """
    source = arguments.get("source", "transformers")
    try:
        message = json.loads(json.dumps({"question": question, "arguments": arguments}, default=_plain))
    except RecursionError:
        raise BadInput(f"{source} is nested too deeply to be a config", code="too-large") from None
    except ValueError as error:  # an integer of thousands of digits
        raise BadInput(f"{source} holds what no config.json can hold: {error}", code="bad-value") from None
    with _turn:
        reply = _running().ask(message)
    if "bug" in reply:
        raise RuntimeError(reply["bug"])
    if "error" in reply:
        raise BadInput(f"{source}: {reply['error']}" if reply.get("last") else reply["error"], code=reply["code"])
    return reply["answer"]


def _plain(value: object) -> Any:
    """Convert a Python value to JSON: NumPy numbers and torch dtypes."""
    if callable(item := getattr(value, "item", None)):  # a NumPy number
        return item()
    if type(value).__module__ == "torch":  # a torch dtype
        return str(value).removeprefix("torch.")
    raise BadInput(f"{shown(value)} is no value that a config.json can hold", code="bad-value")


# -- the process that asks ------------------------------------------------------------------------


class _Builder:
    """One subprocess that answers questions one after another."""

    def __init__(self) -> None:
        self.owner = os.getpid()  # a fork would share the pipes between two processes
        self._folder = mkdtemp(prefix="tallystick-")
        kept = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        code = f"import sys; sys.path += {_roots()!r}; from tallystick.sources.transformers_meta.process import main; main()"
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, **_OFFLINE, **dict.fromkeys(_FOLDERS, self._folder)},
        )
        self._late = False
        self._asked = time.monotonic()

    def ask(self, message: Any) -> dict[str, Any]:
        """Return the reply to a message, or the reason that there is none."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        timer = threading.Timer(WAIT, self._end_late)
        timer.start()
        try:
            send(message, process.stdin)
            reply = receive(process.stdout)
        except OSError:  # a broken pipe, which Windows reports as an invalid argument
            reply = None
        except BaseException:  # a half-read reply would be taken for the next one
            self.end()
            raise
        finally:
            timer.cancel()
            self._asked = time.monotonic()
        if reply is None:
            self.end()
            return {"error": self._why(), "code": "too-large", "last": True}
        read = cast(dict[str, Any], json.loads(reply))
        if read.get("last"):
            self.end()
        return read

    @property
    def ended(self) -> bool:
        """Whether the process has ended, or is about to end."""
        return self._process.poll() is not None or time.monotonic() - self._asked > IDLE / 2

    def end(self) -> None:
        """Kill the process and remove its folder."""
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end_late(self) -> None:
        self._late = True
        self._process.kill()

    def _why(self) -> str:
        code = self._process.returncode
        if self._late or code == -getattr(signal, "SIGXCPU", 0):
            return f"transformers takes more than {WAIT if self._late else SECONDS} seconds to build it"
        return f"the process in which transformers builds it ended with code {code}"


_turn = threading.Lock()
_builders: list[_Builder] = []


def _running() -> _Builder:
    """Return the running subprocess, or start a new one."""
    if _builders and _builders[-1].owner != os.getpid():
        _builders.clear()
    if _builders and _builders[-1].ended:
        _builders.pop().end()
    if not _builders:
        _builders.append(_Builder())
    return _builders[-1]


@atexit.register
def _end() -> None:
    for builder in _builders:
        if builder.owner == os.getpid():
            builder.end()


def _roots() -> list[str]:
    """Return the folders that hold this package, torch and transformers.

    The current folder is never among them.
    """
    origins = [getattr(find_spec(name), "origin", None) for name in ("tallystick", "torch", "transformers")]
    folders = dict.fromkeys(str(Path(origin).parents[1]) for origin in origins if origin)
    return [folder for folder in folders if folder != current_folder()]


# -- the process that builds ----------------------------------------------------------------------


def main() -> None:
    """Answer questions until the other process is gone or silent."""
    requests, replies = take_over()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process is interrupted, and ends this one
    no_core_dump()
    limit_memory(MEMORY)
    with suppress(ImportError):  # the first question's reply reports it
        import transformers  # noqa: F401 - the import's time does not count for a model

        from tallystick.sources.transformers_meta.build import bring, leave_uninitialised

        bring()
        leave_uninitialised()
    seal()  # after the imports
    while (message := _next(requests)) is not None:
        limit_cpu(SECONDS)
        send(_reply(**json.loads(message)), replies)


def _next(requests: BinaryIO) -> bytes | None:
    """Return the next question; end this process if none comes for a long time."""
    alarm = getattr(signal, "alarm", lambda _: None)  # missing on some systems
    alarm(IDLE)
    try:
        return receive(requests)
    finally:
        alarm(0)


def _reply(question: str, arguments: dict[str, Any]) -> dict[str, Any]:
    import traceback

    try:
        from tallystick.sources.transformers_meta import build

        return {"answer": getattr(build, question)(**arguments)}
    except BadInput as error:
        return {"error": str(error), "code": error.code}
    except Refused as refused:
        code, why = "unsafe", f"transformers would {refused} to build it; nothing in a config may make it do so"
    except MemoryError:
        code, why = "too-large", f"transformers takes more than {MEMORY:,} bytes of memory to build it"
    except RecursionError:
        why = f"{arguments.get('source', 'transformers')} is nested too deeply to be a config"
        return {"error": why, "code": "too-large"}
    except ImportError as error:
        code, why = "missing-package", f"transformers cannot be loaded: {' '.join(str(error).split())[:200]}"
    except Exception:
        return {"bug": traceback.format_exc()}
    return {"error": why, "code": code, "last": True}  # modules may be partly imported
