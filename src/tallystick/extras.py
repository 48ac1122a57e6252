"""Optional libraries: the extra that installs each, and the error if one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from tallystick.errors import BadInput

# Library -> the extra that installs it by default; "" if no extra does.
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
    """A library is not installed; the message says what needs it and how to install it."""

    code = "missing-package"


def pip_install(library: str, extra: str | None = None) -> str:
    """Return the command that installs a library with the rest of its extra.

    Args:
        library: its import name.
        extra: the extra to install; None for the library's usual one.

    >>> pip_install("pandas"), pip_install("lightning")
    ("pip install 'tallystick[pandas]'", 'pip install lightning')
    """
    extra = extra or _EXTRAS[library]
    return f"pip install 'tallystick[{extra}]'" if extra else f"pip install {library}"


def needed(library: str, what: str, extra: str | None = None) -> None:
    """Import a library that `what` needs.

    Args:
        library: its import name.
        what: in the user's words: a command, a function, an option.
        extra: the extra with everything that `what` needs, if that is more than the library.

    Raises:
        MissingExtra: if it is not installed. An installed library that fails to import raises
            its own error.
    """
    with needing(what, extra):
        import_module(library)


@contextmanager
def needing(what: str, extra: str | None = None) -> Iterator[None]:
    """Raise `MissingExtra` if an import within the block fails because a library is not installed.

    Args:
        what: the command, function or option that needs it, for the message.
        extra: the extra to install; None for the library's usual one.
    """
    try:
        yield
    except ImportError as error:
        line = missing_line(error, what, extra)
        if line is None:
            raise
        raise MissingExtra(line) from None


def missing_line(error: BaseException, what: str, extra: str | None = None) -> str | None:
    """Return the message for a library that is not installed; None for any other error.

    Args:
        error: the error of the import.
        what: the command, function or option that needs it.
        extra: the extra to install; None for the library's usual one.
    """
    if not isinstance(error, ImportError) or (error.name and not isinstance(error, ModuleNotFoundError)):
        return None
    library = (error.name or str(error)).partition(".")[0]  # import hooks may give only the name as the message
    if library not in _EXTRAS:
        return None
    return f"{what} needs {_SPELLED.get(library, library)}: {pip_install(library, extra)}"
