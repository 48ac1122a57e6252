"""The explorer's page in its two forms, each set up once: of the command, and static."""

from __future__ import annotations

import subprocess
import sys

import pytest

import explorer
from built_site import fresh_site
from tallystick.errors import BadInput
from web_server import served


@pytest.fixture(scope="session")
def started():
    """The address of a server that the command started."""
    command = [sys.executable, "-m", "tallystick", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.terminate()


@pytest.fixture(scope="session")
def static_folder(tmp_path_factory):
    """The site with the static page: that of `make site` where it is fresh, or one built here."""
    made = fresh_site()
    if made is not None and any(made.glob("explore/python-*/snapshot")):
        return made
    folder = tmp_path_factory.mktemp("site")
    try:
        explorer.build(folder / "explore", presets=["gpt2"])
    except BadInput as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="session")
def hosted(static_folder):
    """The address of the static page on a plain web server."""
    with served(static_folder) as server:
        yield f"http://127.0.0.1:{server.server_port}/explore/"
