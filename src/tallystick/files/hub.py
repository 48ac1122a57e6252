"""Whole repositories of the Hugging Face hub, fetched into its cache."""

from __future__ import annotations

from pathlib import Path

from tallystick.errors import BadInput, quoted

_ALWAYS = ["*.json", "merges.txt"]  # config, index, tokenizer
_WEIGHTS = ["*.safetensors"], ["*.bin"]  # pickles only where there is nothing else


def fetched(repository: str) -> Path:
    """The folder in the hub's cache that holds a repository such as ``"gpt2"`` and ``"org/name"``.

    Raises:
        BadInput: where the hub cannot be asked, or has no such repository.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise BadInput(
            f"there is no folder {quoted(repository)}; to fetch a repository of that name: pip install huggingface_hub",
            code="not-found",
        ) from None
    folder = Path()
    for weights in _WEIGHTS:
        try:
            folder = Path(snapshot_download(repository, allow_patterns=[*_ALWAYS, *weights]))
        except Exception as error:  # its own, those of the client beneath it, and the system's
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BadInput(
                f"there is no folder {quoted(repository)}, and the repository could not be fetched: {why}",
                code="unreachable",
            ) from None
        if any(folder.glob(weights[0])):
            break
    return folder
