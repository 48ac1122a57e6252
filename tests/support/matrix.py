"""What works with which torch and transformers: `make matrix`, some minutes and gigabytes for each
pair.

    python tests/support/matrix.py                            # all pairs
    python tests/support/matrix.py 2.6.0+4.57.6 --keep        # one, kept in .matrix/
    # PyTorch without CUDA: a tenth of the bytes
    python tests/support/matrix.py --torch-index https://download.pytorch.org/whl/cpu

For each pair: an environment of its own, the wheel of this tree and the pair into it, and the
checks of on_versions.py. Prints a table; exits with 1 where a check failed. Needs nothing but pip
and venv.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

from repository import ROOT

FOLDER = ROOT / ".matrix"


class Pair(NamedTuple):
    """Versions that are installed together."""

    torch: str
    transformers: str

    def __str__(self) -> str:
        return "+".join(self)


PAIRS = (
    Pair("2.6.0", "4.57.6"),
    Pair("2.8.0", "4.57.6"),
    Pair("2.8.0", "5.0.0"),
    Pair("2.8.0", "5.23.0"),
    Pair("2.13.0", "4.57.6"),
    Pair("2.13.0", "5.23.0"),
)


def built() -> Path:
    """The wheel of this tree."""
    folder = FOLDER / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def checked(pair: Pair, wheel: Path, *, index: str | None, keep: bool) -> dict[str, str | None]:
    """What was wrong with each check, None where nothing was."""
    where = FOLDER / str(pair)
    venv.create(where, clear=True, with_pip=True)
    python = where / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check"]
    try:
        if index:
            subprocess.run([*pip, f"torch=={pair.torch}", "--index-url", index], check=True)
        asked = [f"{wheel}[train,hf]", f"torch=={pair.torch}", f"transformers=={pair.transformers}"]
        subprocess.run([*pip, *asked], check=True)
        done = subprocess.run(
            [python, ROOT / "tests" / "on_versions.py"],
            check=False,
            stdout=subprocess.PIPE,
            stderr=(FOLDER / f"{pair}.log").open("w"),
            text=True,
            cwd=where,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},  # the wheel, not the tree
        )
    except subprocess.CalledProcessError as error:
        return {"installing": f"pip ended with {error.returncode}"}
    finally:
        if not keep:
            shutil.rmtree(where)
    found = {said["check"]: said["wrong"] for said in map(json.loads, done.stdout.splitlines())}
    return found if found and not done.returncode else {**found, "running": f"ended with {done.returncode}"}


def table(found: dict[Pair, dict[str, str | None]]) -> str:
    """A row for each check, a column for each pair, and below it what was wrong."""
    names = list(dict.fromkeys(name for checks in found.values() for name in checks))
    lines = ["| torch + transformers | " + " | ".join(map(str, found)) + " |", "| --- " * (len(found) + 1) + "|"]
    for name in names:
        cells = ["-" if name not in checks else "FAILS" if checks[name] else "ok" for checks in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    wrong = [f"{pair}: {name}: {said}" for pair, checks in found.items() for name, said in checks.items() if said]
    return "\n".join([*lines, "", *wrong])


def main() -> int:
    """Try the pairs; 1 where a check of one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "pairs", nargs="*", metavar="TORCH+TRANSFORMERS", help="such as 2.8.0+5.0.0; default: all known"
    )
    parser.add_argument("--torch-index", metavar="URL", help="where torch is installed from, in place of PyPI")
    parser.add_argument("--keep", action="store_true", help="leave the environments in .matrix/")
    asked = parser.parse_args()
    if any(word.count("+") != 1 for word in asked.pairs):
        parser.error("a pair is TORCH+TRANSFORMERS, such as 2.8.0+5.0.0")
    wheel, found = built(), dict[Pair, dict[str, str | None]]()
    for pair in [Pair(*word.split("+")) for word in asked.pairs] or PAIRS:
        sys.stderr.write(f"{pair} …\n")
        found[pair] = checked(pair, wheel, index=asked.torch_index, keep=asked.keep)
    sys.stdout.write(table(found) + "\n")
    return int(any(any(checks.values()) for checks in found.values()))


if __name__ == "__main__":
    sys.exit(main())
