"""Notebooks, run from the first cell to the last. As a script: runs those that are named, and
stores what they show.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbclient
import nbformat

LONGEST = 300  # seconds of one cell: what hangs ends


def executed(path: Path) -> nbformat.NotebookNode:
    """A notebook as it is after all its cells have run in its folder, without what libraries say on
    stderr.
    """
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with TemporaryDirectory() as settings:  # not those, nor the history, of whoever runs it
        # One thread: several notebooks run at once, and more would wait for each other.
        # As at a desk: where CI is set, pytest shows more of what failed.
        kept = {key: value for key, value in os.environ.items() if key not in ("CI", "BUILD_NUMBER")}
        client.execute(env={**kept, "IPYTHONDIR": settings, "OMP_NUM_THREADS": "1"})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """The text that each cell of code shows; of a picture that it is one."""
    return [
        "".join(output.text if output.output_type == "stream" else output.data["text/plain"] for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main() -> None:
    """Run, and store."""
    for name in sys.argv[1:]:
        notebook = executed(Path(name))
        notebook.metadata.language_info = {"name": "python"}  # and not the version of whoever ran it
        nbformat.write(notebook, name)


if __name__ == "__main__":
    main()
