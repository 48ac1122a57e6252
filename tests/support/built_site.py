"""The site in the folder that SITE names, as `make docs` or `make site` built it."""

from __future__ import annotations

import os
from pathlib import Path

from repository import ROOT


def fresh_site() -> Path | None:
    """The site that SITE names, or None where it is older than anything that it is built of."""
    folder = ROOT / os.environ.get("SITE", "site")
    files = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "mkdocs.yml")]
    for part in ("docs", "src", "examples"):
        files += [path for path in (ROOT / part).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    built = folder / "index.html"
    fresh = "SITE" in os.environ and built.exists() and max(map(_changed, files)) < _changed(built)
    return folder if fresh else None


def _changed(path: Path) -> float:
    return path.stat().st_mtime
