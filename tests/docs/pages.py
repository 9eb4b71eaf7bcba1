"""What a page of the documents tells a reader to do: files to write, commands to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "clients" / "examples").rglob("README.md")),
    *sorted((ROOT / "deploy").rglob("*.md")),
)
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`(?:/etc/numalign/)?([\w.-]+\.(?:yaml|json))`")


@dataclass(frozen=True, slots=True)
class Command:
    """A line that is typed, with what is shown below it."""

    line: str
    shown: tuple[str, ...] = ()

    @property
    def stays(self) -> bool:
        """Whether it runs on while the next ones are typed."""
        return self.line.endswith("&")

    @property
    def program(self) -> str:
        return self.line.split()[0]


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader is to write; the text in front of it names it."""

    name: str
    text: str


Step: TypeAlias = Command | File


def steps_of(page: Path) -> Iterator[Step]:
    """What a page says, in its order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        indent, kind, body = found.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        if kind in {"console", "sh", "bash"}:
            yield from _commands(body)
        elif kind in {"yaml", "json"}:
            before = text[: found.start()].rstrip().rpartition("\n\n")[2]
            named = _NAME.findall(before) if before.endswith((":", ": |")) else []
            if named:
                yield File(named[-1], body)


def _commands(body: str) -> Iterator[Command]:
    joined = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        line = re.sub(r"  +#.*$", "", line).rstrip()
        yield Command(re.sub(r"  +", " ", line), tuple(shown.rstrip().splitlines()))


def name_of(page: Path) -> str:
    """The page's path in the repository."""
    return str(page.relative_to(ROOT))
