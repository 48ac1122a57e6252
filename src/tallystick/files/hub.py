"""Download whole repositories of the Hugging Face hub into its cache."""

from __future__ import annotations

from pathlib import Path

from tallystick.errors import BadInput, quoted

_ALWAYS = ["*.json", "merges.txt"]  # config, index, tokenizer
_WEIGHTS = ["*.safetensors"], ["*.bin"]  # pickles only without a safetensors file


def fetched(repository: str) -> Path:
    """Download a repository such as ``"gpt2"`` or ``"org/name"``; return its folder in the cache.

    Raises:
        BadInput: if the hub cannot be reached, or has no such repository.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise BadInput(
            f"there is no folder {quoted(repository)}; to fetch a hub repository with this name: pip install huggingface_hub",
            code="not-found",
        ) from None
    folder = Path()
    for weights in _WEIGHTS:
        try:
            folder = Path(snapshot_download(repository, allow_patterns=[*_ALWAYS, *weights]))
        except Exception as error:  # errors of huggingface_hub, its HTTP client and the system
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BadInput(
                f"there is no folder {quoted(repository)}, and no hub repository could be fetched: {why}",
                code="unreachable",
            ) from None
        if any(folder.glob(weights[0])):
            break
    return folder
