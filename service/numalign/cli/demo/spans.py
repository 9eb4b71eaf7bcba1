"""Spans of one trace as a tree of hops, drawn with their durations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from rich.text import Text
from rich.tree import Tree


class Kind(Enum):
    """Which side of a call a span saw."""

    CLIENT = "client"
    SERVER = "server"
    INNER = "inner"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One span. Ids are hexadecimal, times nanoseconds since the epoch."""

    span_id: str
    parent_id: str
    service: str
    name: str
    kind: Kind
    start: int
    end: int

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1e6


def is_complete(spans: Iterable[SpanRecord], root_id: str) -> bool:
    """Whether the tree below the span `root_id` has no holes.

    Everything hangs on the root, and every call that somebody made was seen by whoever
    answered it.
    """
    found = tuple(spans)
    ids = {span.span_id for span in found}
    answered = {span.parent_id for span in found if span.kind is Kind.SERVER}
    return (
        any(span.parent_id == root_id for span in found)
        and all(span.parent_id in ids or span.parent_id == root_id for span in found)
        and all(span.span_id in answered for span in found if span.kind is Kind.CLIENT)
    )


def trace_tree(title: str, spans: Iterable[SpanRecord], root_id: str) -> Tree:
    """The hops below the span `root_id`, in order of time.

    Both sides of a call share a line: how long its caller waited, and how long the service
    that answered worked on it.
    """
    children: dict[str, list[SpanRecord]] = {}
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        children.setdefault(span.parent_id, []).append(span)
    tree = Tree(Text(title, style="bold"))
    _grow(tree, children, root_id)
    return tree


def _grow(tree: Tree, children: Mapping[str, list[SpanRecord]], parent_id: str) -> None:
    for span in children.get(parent_id, ()):
        answers = [s for s in children.get(span.span_id, ()) if s.kind is Kind.SERVER]
        if span.kind is Kind.CLIENT and len(answers) == 1:
            server = answers[0]
            branch = tree.add(_line(server, f"{span.milliseconds:.2f} ms, of which "))
            _grow(branch, children, server.span_id)
        else:
            _grow(tree.add(_line(span, "")), children, span.span_id)


def _line(span: SpanRecord, before: str) -> Text:
    name = span.name.rpartition(".")[2]
    there = " there" if before else ""
    return Text.assemble(
        (f"{span.service.removeprefix('numalign-'):<10}", "cyan"),
        f"{name}  ",
        (f"{before}{span.milliseconds:.2f} ms{there}", "dim"),
    )
