"""What this process may use. Where the system has no such limit, nothing is limited."""

from __future__ import annotations

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]


def limit_memory(most: int) -> None:
    """Let allocations beyond `most` bytes in all fail, with a MemoryError: private memory, not files that are mapped."""
    _limit("RLIMIT_DATA", most)


def limit_cpu(seconds: int) -> None:
    """End this process once it has used `seconds` more of CPU."""
    if resource:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit("RLIMIT_CPU", int(used.ru_utime + used.ru_stime) + seconds)


def no_core_dump() -> None:
    """Leave no image of this process's memory behind where it is ended."""
    _limit("RLIMIT_CORE", 0)


def _limit(name: str, most: int) -> None:
    kind = getattr(resource, name, None)
    if kind is not None:
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
