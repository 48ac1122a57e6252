"""The process in which transformers builds: sealed off, with limits of time and memory, started when it is first asked.

A config may come from anywhere, and transformers trusts it: it asks on the terminal whether to run a stranger's code, asks
the hub for what a key names, and builds as much as a key says. Here is no terminal and no network, and a build without
end is ended with the process.
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

SECONDS = 10  # of CPU for one model; the largest that was published takes some six
WAIT = 120  # seconds, where the machine does much else
IDLE = 120  # seconds without a question, after which it ends: nobody needs its memory
MEMORY = 1_000_000_000  # bytes in all; importing transformers takes 400 million

# Nobody is there to answer: neither the hub nor a registry of kernels.
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "USE_HUB_KERNELS": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Where libraries write what they keep for another time; this process may write nowhere else.
_FOLDERS = ("TMPDIR", "HF_HOME", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def ask(question: str, **arguments: Any) -> Any:
    """What a function of `build` answers, in the process that builds.

    Args:
        question: its name, ``knows`` or ``build``.
        arguments: its arguments, as JSON could hold them.

    Raises:
        BadInput: as the function does, or where it takes too much time or memory, or would reach out.
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
    """What JSON writes for a value of Python's that a dictionary may hold."""
    if callable(item := getattr(value, "item", None)):  # a number of NumPy's
        return item()
    if type(value).__module__ == "torch":  # a dtype
        return str(value).removeprefix("torch.")
    raise BadInput(f"{shown(value)} is no value that a config.json can hold", code="bad-value")


# -- the process that asks ------------------------------------------------------------------------


class _Builder:
    """One process, which answers one question after another."""

    def __init__(self) -> None:
        self.owner = os.getpid()  # after a fork the pipes are those of two processes
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
        """Its reply, or why there is none."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        timer = threading.Timer(WAIT, self._end_late)
        timer.start()
        try:
            send(message, process.stdin)
            reply = receive(process.stdout)
        except BrokenPipeError:
            reply = None
        except BaseException:  # a reply half read would be taken for that to the next question
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
        """Whether it can be asked no more, or is about to end."""
        return self._process.poll() is not None or time.monotonic() - self._asked > IDLE / 2

    def end(self) -> None:
        """End the process, and take away its folder."""
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
    """The process of before where it still runs, or a new one."""
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
    """Where this package and what it needs were found; the current folder is no such place, whatever lies there."""
    origins = [getattr(find_spec(name), "origin", None) for name in ("tallystick", "torch", "transformers")]
    folders = dict.fromkeys(str(Path(origin).parents[1]) for origin in origins if origin)
    return [folder for folder in folders if folder != current_folder()]


# -- the process that builds ----------------------------------------------------------------------


def main() -> None:
    """Answer until nobody asks any more."""
    requests, replies = take_over()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks is interrupted, and ends this process
    no_core_dump()
    limit_memory(MEMORY)
    with suppress(ImportError):  # the first question gets it as its answer
        import transformers  # noqa: F401 - its seconds are none of a model's

        from tallystick.sources.transformers_meta.build import bring, leave_uninitialised

        bring()
        leave_uninitialised()
    seal()  # now that what is installed is found
    while (message := _next(requests)) is not None:
        limit_cpu(SECONDS)
        send(_reply(**json.loads(message)), replies)


def _next(requests: BinaryIO) -> bytes | None:
    """The next question. Where none comes for long this process ends."""
    alarm = getattr(signal, "alarm", lambda _: None)  # not on every system
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
    return {"error": why, "code": code, "last": True}  # modules may be half imported
