"""Read texts: files, folders, JSONL, Parquet, `datasets` folders, Python's own sources."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.errors import BadInput, code_of, quoted

STDLIB = "stdlib"
TEXT_KEYS = ("text", "content")  # keys of a record's text
_SKIPPED = {"__pycache__", "site-packages", "dist-packages", "node_modules"}


class Document(NamedTuple):
    """One text; its name alone decides which split it belongs to."""

    name: str
    text: str


def documents(data: str) -> Iterator[Document]:
    """Yield all texts of a file, of a folder, or of Python's standard library, in a fixed order.

    A folder yields every text file in it and its subfolders, except hidden ones. A `.jsonl` or
    `.parquet` file yields one text per record.

    Args:
        data: a path, or `STDLIB`.

    Raises:
        BadInput: if there is no such path, or a single file is not text.
    """
    if data == STDLIB:
        root = Path(sysconfig.get_paths()["stdlib"])
        paths = sorted(path for path in root.rglob("*.py") if not _SKIPPED.intersection(path.parts))
        yield from (document for path in paths for document in _texts(path, path.relative_to(root).as_posix()))
        return
    root = Path(data)
    if root.is_file():
        found = False
        for document in _texts(root, root.name, only=True):
            found = True
            yield document
        if not found:
            raise BadInput(f"{root} holds no text to train on", code="not-found")
        return
    if not root.is_dir():
        raise BadInput(
            f"there is no file or folder {quoted(data)} to train on; {STDLIB} means Python's own library",
            code="not-found",
        )
    if (root / "dataset_info.json").exists() or (root / "dataset_dict.json").exists():
        yield from _dataset(root)
        return
    for path, name in files_of(root):
        yield from _texts(path, name)


def files_of(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the readable files of a folder, or the one file, with names; skip hidden ones."""
    if root.is_file():
        yield root, root.name
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not any(part.startswith(".") or part in _SKIPPED for part in inside.parts):
            yield path, inside.as_posix()


def _texts(path: Path, name: str, *, only: bool = False) -> Iterator[Document]:
    """Yield the texts of one file; skip a file that is not text, or refuse it if `only`."""
    if path.suffix == ".jsonl":
        yield from _records(path, name)
    elif path.suffix == ".parquet":
        yield from _table(path, name)
    else:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror or error}", code=code_of(error)) from None
        if only and not content:
            raise BadInput(f"{path} is empty", code="truncated")
        try:
            if b"\0" in content:
                raise UnicodeDecodeError("utf-8", content, content.index(b"\0"), content.index(b"\0") + 1, "null")
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if only:
                raise BadInput(f"{path} is not text: byte {error.start} is not UTF-8 text", code="malformed") from None
            return
        if text:
            yield Document(name, text)


def _records(path: Path, name: str) -> Iterator[Document]:
    with path.open(encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield Document(f"{name}#{number}", _text_of(json.loads(line), f"{path} line {number}"))
        except json.JSONDecodeError as error:
            raise BadInput(f"{path} line {number} is not JSON: {error.msg}", code="malformed") from None
        except UnicodeDecodeError as error:
            raise BadInput(f"{path} is not text: {error.reason}", code="malformed") from None


def _table(path: Path, name: str) -> Iterator[Document]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise BadInput(f"{path}: reading Parquet needs pyarrow: pip install pyarrow", code="missing-package") from None
    try:
        table = parquet.ParquetFile(path)
    except (ArrowInvalid, OSError) as error:
        raise BadInput(f"{path} is not Parquet: {error}", code="malformed") from None
    column = next((key for key in TEXT_KEYS if key in table.schema_arrow.names), None)
    if column is None:
        raise BadInput(
            f"{path} has no column {' or '.join(TEXT_KEYS)}, but {', '.join(table.schema_arrow.names)}",
            code="malformed",
        )
    number = 0
    for batch in table.iter_batches(columns=[column]):
        for text in batch.column(0).to_pylist():
            number += 1
            if text:
                yield Document(f"{name}#{number}", text)


def _dataset(folder: Path) -> Iterator[Document]:
    try:
        import datasets
    except ImportError:
        raise BadInput(
            f"reading {folder} needs the datasets library: pip install datasets", code="missing-package"
        ) from None
    loaded = datasets.load_from_disk(str(folder))
    splits = loaded if isinstance(loaded, dict) else {"all": loaded}
    for split, rows in splits.items():
        for number, row in enumerate(rows, start=1):
            yield Document(f"{split}#{number}", _text_of(row, f"{folder} row {number}"))


def _text_of(record: Any, where: str) -> str:
    if isinstance(record, str):
        return record
    text = next((record[key] for key in TEXT_KEYS if key in record), None) if isinstance(record, dict) else None
    if not isinstance(text, str):
        raise BadInput(f"{where} has no text in {' or '.join(TEXT_KEYS)}", code="malformed")
    return text
