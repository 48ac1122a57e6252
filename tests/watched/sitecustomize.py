"""Writes down what a process and those that it starts do to the world: network, programs, files
written, code run, questions.

On the path of such a process it is imported before anything else; TALLYSTICK_WATCHED names the file
that it writes to.
"""

import json
import os
import sys
from types import CodeType

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
STEPS = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "pty.",
    "builtins.input",
)
CHANGES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.",
)

written = os.open(os.environ["TALLYSTICK_WATCHED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def watch(event, arguments):
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
            note("write", path)
    elif event == "exec":
        if isinstance(arguments[0], CodeType) and os.path.isabs(arguments[0].co_filename):
            note("run", arguments[0].co_filename)
    elif event == "import":
        if arguments[1]:
            note("run", arguments[1])
    elif event.startswith(CHANGES):
        note("write", arguments[0])
    elif event.startswith(STEPS) and event != "socket.gethostname":
        note(event, arguments[1] if event == "subprocess.Popen" else arguments[:2])


def note(what, of):
    of = os.fsdecode(of) if isinstance(of, bytes | os.PathLike) else of
    os.write(written, json.dumps([what, of], default=repr).encode() + b"\n")


sys.addaudithook(watch)
