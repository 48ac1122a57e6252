"""The executable that `preloaded.py` writes, after a line that gives ADDRESS, REAL and SETTINGS."""

import json
import os
import resource
import signal
import socket
import sys

HANDED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)


def main():
    words = sys.argv[1:]
    if not understood(words) or any(os.environ.get(name) != value for name, value in SETTINGS.items()):  # noqa: F821
        os.execv(REAL, [REAL, *words])  # noqa: F821
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(ADDRESS)  # noqa: F821
        status = ask(connection, words)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def understood(words):
    """Whether these are arguments that a fork can act on."""
    while words and words[0].startswith("-") and words[0] not in ("-c", "-m"):
        if words[0] not in ("-P", "-W", "-Xfrozen_modules=off"):
            return False
        words = words[1 + (words[0] == "-W") :]
    return bool(words)


def ask(connection, words):
    """The status with which the fork ended."""
    ignored = [name for name in HANDED_ON if signal.getsignal(name) == signal.SIG_IGN]
    folder = os.open(".", os.O_RDONLY)
    descriptors = [
        int(name)
        for name in os.listdir("/proc/self/fd")
        if int(name) not in (folder, connection.fileno()) and os.path.exists(f"/proc/self/fd/{name}")
    ]
    limits = [(kind, resource.getrlimit(kind)) for name, kind in vars(resource).items() if name.startswith("RLIMIT_")]
    umask = os.umask(0)
    message = json.dumps({
        "words": words,
        "environment": dict(os.environ),
        "descriptors": descriptors,
        "umask": umask,
        "ignored": ignored,
        "masked": list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "limits": limits,
    }).encode()  # fmt: skip
    for name in set(HANDED_ON) - {*ignored}:
        signal.signal(name, lambda number, _: connection.send(bytes([number])))
    socket.send_fds(connection, [len(message).to_bytes(8)], [folder, *descriptors])
    connection.sendall(message)
    for descriptor in (folder, *descriptors):
        if descriptor != 2:
            os.close(descriptor)  # a pipe ends when the fork closes it
    longest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))  # so that the fork is the first that ends
    return int.from_bytes(connection.recv(4))


main()
