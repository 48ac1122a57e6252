"""Python's search for cyclic garbage, put off while a header is read or a model is built.

It looks through all objects again each time their number has grown by a quarter. A large header becomes some 100,000
tuples, of which none is part of a cycle and none may go yet: a third of the time went into looking at them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Search for no cycles within; whoever had switched the search off finds it so afterwards."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()
