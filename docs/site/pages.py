"""What the site has besides the files of docs/: pages that are made as it is built, the options of
each command, and files that pages link to.

A link in a page is written as it works in the repository, and turned here into one that works in
the site.
"""

from __future__ import annotations

import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any

import nbconvert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from architectures import FAMILIES, family_pages
from commands import commands, index_page, options_of
from explorer import page_files
from tallystick.web.bootstrap import FIRST

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
# Files of the repository that are pages of the site under another name; what else pages link to is
# in OTHERS.
EXPLORER = "explore/"  # the page; `make site` adds Python to it
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "src/tallystick/web/static/explore.html": f"{EXPLORER}index.html",
}
OTHERS = "repository/"
COMMANDS, ARCHITECTURES = "commands/", "architectures/"  # folders of pages that are made
TYPE = re.compile(rf"^(\| )(`(\S+)`)( .*?\| )({'|'.join(FAMILIES)})(?= \|)", re.MULTILINE)
BLOCK = re.compile(r"<code>((?:(?!</code>).)*)</code></pre>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
ROW = re.compile(r"\S {2,}\S|[─│→]{4}")  # of a table: not to be folded
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)\s#]+")  # not those to elsewhere, nor inside the page


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages that are made into the navigation, at the end of their sections."""
    made = {
        "Commands": [f"{COMMANDS}{name}.md" for name in commands()],
        "Architectures": [f"{ARCHITECTURES}{name}.md" for name in FAMILIES],
    }
    for section in config.nav or []:
        for title, pages in section.items() if isinstance(section, dict) else ():
            if title in made:
                pages.extend(made[title])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the files that pages link to."""

    def add(place: str, **content: Any) -> None:
        files.append(File.generated(config, place, **content))

    add(f"{COMMANDS}index.md", content=index_page())
    for name, command in commands().items():
        if not files.get_file_from_path(f"{COMMANDS}{name}.md"):
            add(f"{COMMANDS}{name}.md", content=f"# {name}\n\n{command.description}\n")
    for name, page in family_pages((ROOT / DOCS / "architectures.md").read_text(encoding="utf-8")).items():
        add(f"{ARCHITECTURES}{name}.md", content=page)
    for name, place in PAGES.items():
        if not place.startswith(EXPLORER):
            add(place, abs_src_path=str(ROOT / name))
    for name, content in page_files([FIRST]).items():
        add(EXPLORER + name, content=content)
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
    """Turn the links of a page; add a command's options, and the links to the families."""
    place = page.file.src_uri
    here = posixpath.dirname(place) or "."
    markdown = LINK.sub(lambda link: posixpath.relpath(_place_of(_target(page.file, link[0])), here), markdown)
    if place == "architectures.md":
        return TYPE.sub(rf"\1[\2]({ARCHITECTURES}\5.md#\3)\4[\5]({ARCHITECTURES}\5.md)", markdown)
    if (command := commands().get(posixpath.basename(place).removesuffix(".md"))) and place.startswith(COMMANDS):
        return f"{markdown}\n{options_of(command)}"
    return markdown


def on_page_content(html: str, **_: Any) -> str:
    """Mark the lines of tables in blocks, which are not folded, and say how long the longest is
    (site.css).
    """
    return BLOCK.sub(_block, html)


def _block(found: re.Match[str]) -> str:
    lines, columns = [], 0
    for line in found[1].split("\n"):
        text = unescape(TAG.sub("", line))
        row = ROW.search(text.strip())
        lines.append(f'<span class="row">{line}</span>' if row else line)
        columns = max(columns, len(text.rstrip()) if row else 0)
    style = f' style="--columns: {columns}"' if columns else ""
    return f"<code{style}>{chr(10).join(lines)}</code></pre>"


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
