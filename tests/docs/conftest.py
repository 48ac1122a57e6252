"""The site, built once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from built_site import fresh_site
from repository import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site that SITE names, where it is fresh; else one that is built as `make docs` builds
    it. What needs it runs in one worker: ``xdist_group("site")``.
    """
    if (made := fresh_site()) is not None:
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
