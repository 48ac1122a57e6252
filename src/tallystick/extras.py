"""Libraries that tallystick does without until they are needed: which extra brings each, and the line that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from tallystick.errors import BadInput

# A library -> the extra that brings it, where no more is asked for; "" where none does.
_EXTRAS = {
    "torch": "torch",
    "tokenizers": "models",
    "transformers": "hf",
    "numpy": "train",
    "safetensors": "train",
    "huggingface_hub": "hub",
    "fsspec": "stores",
    "s3fs": "stores",
    "gcsfs": "stores",
    "pandas": "pandas",
    "matplotlib": "plot",
    "starlette": "web",
    "uvicorn": "web",
    "accelerate": "survive",
    "peft": "survive",
    "torchao": "survive",
    "lightning": "",
    "pytorch_lightning": "",
}
_SPELLED = {"torch": "PyTorch"}


class MissingExtra(BadInput, ImportError):
    """A library that is not installed: what needs it, and the command that installs it."""

    code = "missing-package"


def pip_install(library: str, extra: str | None = None) -> str:
    """The command that brings a library, with all else of its extra.

    >>> pip_install("pandas"), pip_install("lightning")
    ("pip install 'tallystick[pandas]'", 'pip install lightning')
    """
    extra = extra or _EXTRAS[library]
    return f"pip install 'tallystick[{extra}]'" if extra else f"pip install {library}"


def needed(library: str, what: str, extra: str | None = None) -> None:
    """Import a library that `what` needs.

    Args:
        library: its name in an import.
        what: in the user's words: a command, a function, an option.
        extra: the one that brings all that `what` needs, where that is more than the library.

    Raises:
        MissingExtra: where it is not installed. One that is and cannot be imported raises its own error.
    """
    with needing(what, extra):
        import_module(library)


@contextmanager
def needing(what: str, extra: str | None = None) -> Iterator[None]:
    """Within this, an import of a library that is not installed raises `MissingExtra`."""
    try:
        yield
    except ImportError as error:
        line = missing_line(error, what, extra)
        if line is None:
            raise
        raise MissingExtra(line) from None


def missing_line(error: BaseException, what: str, extra: str | None = None) -> str | None:
    """What to say of a library that is not installed; None for any other error."""
    if not isinstance(error, ImportError) or (error.name and not isinstance(error, ModuleNotFoundError)):
        return None
    library = (error.name or str(error)).partition(".")[0]  # who stands in for the import may say the name alone
    if library not in _EXTRAS:
        return None
    return f"{what} needs {_SPELLED.get(library, library)}: {pip_install(library, extra)}"
