# ruff: noqa: INP001 - a script by itself
"""What the site of the documents needs besides mkdocs: a hook of mkdocs.yml.

The documents are written to be read in the repository as well. So they link to files outside of
docs/, which are not part of the site, and have code in numbered lists, which Python-Markdown does
not read as Markdown is read elsewhere. Both are put right for the site alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^]\[]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_ITEM = re.compile(r"(\d+\.|-) +")
_FENCE = re.compile(r"( *)```")


class DeadLink(Exception):
    """A link to a file that is not there."""


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page as mkdocs is to read it."""
    return with_inner_links(with_deep_lists(markdown), page.file.src_uri)


def with_inner_links(markdown: str, page: str) -> str:
    """Links to directories and out of docs/ as the name of what is there. Raises DeadLink."""

    def shown(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if path.startswith("docs/") and not (ROOT / path).is_dir():
            return found[0]
        if not (ROOT / path).exists():
            raise DeadLink(f"docs/{page}: {target}: there is no {path}")
        named = words.strip("`") in {path, posixpath.basename(path)}
        return f"`{path}`" if named else f"{words} (`{path}`)"

    return _LINK.sub(shown, markdown)


def with_deep_lists(markdown: str) -> str:
    """What belongs to an item of a list, indented as Python-Markdown wants it."""
    return "\n".join(_deepened(markdown.splitlines())) + "\n"


def _deepened(lines: list[str]) -> Iterator[str]:
    depth = 0  # how far what belongs to the item is indented; 0 outside of lists
    code = False
    before = ""
    for line in lines:
        fence = _FENCE.match(line)
        item = None if code else _ITEM.match(line)
        if before.strip() and ((item and not depth) or before.startswith("<!--")):
            yield ""  # a list or table may follow a line at once elsewhere
        before = line
        if item:
            depth = item.end()
            yield line
        elif not depth or (line.strip() and not line.startswith(" " * depth)):
            depth = 0
            code = code != bool(fence)
            yield line
        elif fence and len(fence[1]) == depth:
            code = not code
            yield ""
        else:
            inner = line[depth:]
            yield (" " * (8 if code else 4) + inner) if inner.strip() else ""


if __name__ == "__main__":
    raise SystemExit("run `make docs`")
