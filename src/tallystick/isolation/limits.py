"""Limit this process's memory and CPU time, if the system supports it."""

from __future__ import annotations

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]


def limit_memory(most: int) -> None:
    """Make allocations of private memory fail with MemoryError beyond `most` bytes in total."""
    _limit("RLIMIT_DATA", most)


def limit_cpu(seconds: int) -> None:
    """End this process after `seconds` more of CPU time."""
    if resource:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit("RLIMIT_CPU", int(used.ru_utime + used.ru_stime) + seconds)


def no_core_dump() -> None:
    """Prevent a core dump of this process."""
    _limit("RLIMIT_CORE", 0)


def _limit(name: str, most: int) -> None:
    kind = getattr(resource, name, None)
    if kind is not None:
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
