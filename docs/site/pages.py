"""What the site has besides the files of docs/: pages that are made as it is built, and files that
its pages link to.

A link in a page is written as it works in the repository, and turned here into one that works in
the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import nbconvert
from commands import commands_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
# Files of the repository that are pages of the site under another name; what else pages link to is
# in OTHERS.
PAGES = {"README.md": "guide.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
OTHERS = "repository/"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)\s#]+")  # not those to elsewhere, nor inside the page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the files that pages link to."""

    def add(place: str, **content: Any) -> None:
        files.append(File.generated(config, place, **content))

    add("commands.md", content=commands_page())
    for name, place in PAGES.items():
        add(place, abs_src_path=str(ROOT / name))
    exporter = nbconvert.MarkdownExporter()
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(notebook)
        name = posixpath.splitext(notebook.src_uri)[0]  # and of its pictures
        body, resources = exporter.from_filename(notebook.abs_src_path, {"unique_key": posixpath.basename(name)})
        add(f"{name}.md", content=body.replace("![png]", "![what the cell draws]"))
        for picture, content in resources["outputs"].items():
            add(posixpath.join(posixpath.dirname(name), picture), content=content)
    linked = {_target(page, link) for page in files.documentation_pages() for link in LINK.findall(page.content_string)}
    for target in sorted(linked):
        if _place_of(target).startswith(OTHERS) and (ROOT / target).is_file():
            add(_place_of(target), abs_src_path=str(ROOT / target))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn the links of a page."""
    here = posixpath.dirname(page.file.src_uri) or "."
    return LINK.sub(lambda link: posixpath.relpath(_place_of(_target(page.file, link[0])), here), markdown)


def _target(page: File, link: str) -> str:
    """The file of the repository that a link in a page leads to."""
    names = {place: name for name, place in PAGES.items()}
    written_in = names.get(page.src_uri, DOCS + page.src_uri)
    return posixpath.normpath(posixpath.join(posixpath.dirname(written_in), link))


def _place_of(target: str) -> str:
    """Where the site has a file of the repository."""
    if target.startswith(DOCS):
        return re.sub(r"\.ipynb$", ".md", target.removeprefix(DOCS))
    return PAGES.get(target, OTHERS + target)
