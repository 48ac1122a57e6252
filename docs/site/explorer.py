"""The explorer as a page of any web host: `make site` puts it into the site's folder `explore/`.

    python docs/site/explorer.py site/explore

The HTML, JavaScript and CSS are those of `tallystick explore`. Python runs in the browser: Pyodide
from its npm package, with tallystick and rich as they are installed here. Node starts Pyodide once,
imports what answers need, and saves its memory, from which each browser goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import files
from pathlib import Path
from typing import Any

import tallystick
from tallystick.errors import BadInput
from tallystick.presets import PRESETS
from tallystick.report.html.page import STYLE_SHEET
from tallystick.web.answers import answers
from tallystick.web.bootstrap import FIRST, STATIC, start
from tallystick.web.stories import STORIES, Story

HERE = Path(__file__).parent
PYODIDE = "314.0.7"
NEEDED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# Rooms that need torch or a process of their own, and what the host serves by itself.
NOT_PACKED = ("cli", "live", "models", "training", "web/static")
SHOWN = ("count", "strip", "formula", "ties", "memory", "compute")
WIDTHS = {"": 760, "-narrow": 340}  # pixels of the pictures drawn in advance; the page draws them anew
EPOCH = (1980, 1, 1, 0, 0, 0)  # of the packed files, so that equal files make equal archives


def build(folder: Path, *, presets: Iterable[str] = PRESETS) -> None:
    """Write the page into a folder.

    Args:
        folder: made if it does not exist; other files in it stay.
        presets: models whose first answers are drawn in advance.

    Raises:
        BadInput: if node or npm are missing, or fail.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise BadInput(
                f"the explorer's page needs {program}: install Node.js 18 or newer, with npm", code="missing-extra"
            )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(scratch) / "python"
        _pyodide(python)
        _packages(python / "packages.zip")
        _run(["node", str(HERE / "snapshot.mjs"), str(python)], "the snapshot of Python was not made")
        for old in folder.glob("python-*"):
            shutil.rmtree(old)
        place = folder / f"python-{_digest(sorted(python.iterdir()))}"
        shutil.copytree(python, place)
    written = page_files(list(presets), f"{place.name}/")
    for name, content in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    _offline(folder, [name for name in written if not name.startswith("first/") or _is_default(name)], place)


def _pyodide(folder: Path) -> None:
    """Fetch Pyodide's npm package, which npm checks and keeps, and take what a browser needs."""
    folder.mkdir()
    packed = ["npm", "pack", "--silent", "--prefer-offline", f"pyodide@{PYODIDE}"]
    _run(packed, f"npm could not fetch pyodide@{PYODIDE}", cwd=folder)
    archive = next(folder.glob("*.tgz"))
    with tarfile.open(archive) as opened:
        opened.extractall(folder, [f"package/{name}" for name in NEEDED], filter="data")
    for path in (folder / "package").iterdir():
        path.rename(folder / path.name)
    (folder / "package").rmdir()
    archive.unlink()
    lock = json.loads((folder / "pyodide-lock.json").read_bytes())  # a list of packages, of which none is loaded
    (folder / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), encoding="utf-8")


def _packages(archive: Path) -> None:
    """Zip what the answers may import: Python's `zipimport` reads it as it is."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for name, path in sorted(_modules()):
            written.writestr(zipfile.ZipInfo(name, EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)


def _modules() -> Iterator[tuple[str, Path]]:
    root = Path(tallystick.__file__).parent
    for path in root.rglob("*.py"):
        place = path.relative_to(root).as_posix()
        if not place.startswith(tuple(f"{room}/" for room in NOT_PACKED)):
            yield f"tallystick/{place}", path
    for file in files("rich") or ():
        if file.suffix == ".py":
            yield file.as_posix(), Path(str(file.locate()))


def page_files(presets: Sequence[str], python: str | None = None) -> dict[str, bytes]:
    """Return the page's own files and the answers drawn in advance, by their names.

    Args:
        presets: models whose first answers are drawn in advance.
        python: the folder of Pyodide; None for a page without it, which shows these answers alone.
    """
    found = {"index.html": (STATIC / "explore.html").read_bytes(), "page.css": STYLE_SHEET.read_bytes()}
    own = (path for path in sorted(STATIC.iterdir()) if path.suffix != ".html")
    found |= {f"static/{path.name}": path.read_bytes() for path in own}
    requests = {name: {"model": {"name": name}, "wanted": list(SHOWN)} for name in presets}
    requests |= {f"story-{name}": _request_of(story) for name, story in STORIES.items()}
    begin = start(None, {}, answered_by="browser") | {"first": list(requests), "docs": "../"}
    begin["python"] = python or "python/"
    begin |= {"offline": "offline.js"} if python else {}
    found["start.json"] = json.dumps(begin).encode()
    for name, request in requests.items():
        for kind, width in WIDTHS.items():
            drawn = answers({**request, "width": width}, None)
            for answer in drawn.values():
                answer.pop("answer", None)  # for export, when Python has started
            found[f"first/{name}{kind}.json"] = json.dumps(drawn).encode()
    return found


def _request_of(story: Story) -> dict[str, Any]:
    """Return the request whose answers the page shows for a story."""
    by_state = {"compare": "other", "reconcile": "claim", "check": "text"}
    wanted = [*SHOWN, *(name for name, key in by_state.items() if story.state.get(key))]
    wanted += ["fit"] if "device" in story.state.get("run", {}) else []
    return {**story.state, "wanted": wanted}


def _is_default(name: str) -> bool:
    return name in {f"first/{FIRST}{kind}.json" for kind in WIDTHS}


def _offline(folder: Path, names: Iterable[str], python: Path) -> None:
    """Write the service worker, which keeps the page's files for use without a network."""
    kept = [*names, *(f"{python.name}/{path.name}" for path in sorted(python.iterdir()))]
    version = json.dumps(_digest(folder / name for name in kept))
    listed = json.dumps(["./" if name == "index.html" else name for name in kept])
    code = (HERE / "offline.js").read_text(encoding="utf-8")
    (folder / "offline.js").write_text(f"const VERSION = {version};\nconst FILES = {listed};\n{code}", encoding="utf-8")


def _digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:12]


def _run(command: list[str], failure: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise BadInput(f"{failure}: {said[-1][:300]}", code="unreachable")


def main() -> int:
    """Build the page; return 2 with one line if it cannot be built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--presets", nargs="*", default=list(PRESETS), help="drawn in advance (default: all)")
    options = parser.parse_args()
    try:
        build(options.folder, presets=options.presets)
    except BadInput as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
