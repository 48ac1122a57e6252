"""The site, built once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from repository import ROOT


def is_fresh(folder):
    """Whether a site is younger than all that it is built of."""
    files = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "mkdocs.yml")]
    for part in ("docs", "src", "examples"):
        files += [path for path in (ROOT / part).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    built = folder / "index.html"
    return built.exists() and max(path.stat().st_mtime for path in files) < built.stat().st_mtime


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site that SITE names, where it is fresh; else one that is built as `make docs` builds
    it. What needs it runs in one worker: ``xdist_group("site")``.
    """
    made = ROOT / os.environ.get("SITE", "site")
    if "SITE" in os.environ and is_fresh(made):
        return made
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder
