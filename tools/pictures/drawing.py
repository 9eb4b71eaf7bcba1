"""Draws a picture as SVG that is readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Any

from pictures.decisions import Block, Outcome
from pictures.scenes import Picture

SQUARE, GAP, PAD = 20, 4, 10
LABEL = 120
_NODE_HEIGHT = 26 + 2 * SQUARE
_NAMESPACE = "http://www.w3.org/2000/svg"
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 9px; text-anchor: middle; }
  .title { font-size: 14px; font-weight: 600; }
  .bold { font-weight: 600; }
  .quiet { fill: #57606a; }
  .no { fill: #a40e26; }
  .page { fill: #ffffff; stroke: #d0d7de; }
  .node { fill: #f6f8fa; stroke: #8c959f; }
  .cpu { stroke: #8c959f; }
  .free { fill: #ffffff; }
  .reserved { fill: #8c959f; }
  .other { fill: #ffd8a8; }
  .new { fill: #74c0fc; }
  .second { fill: #b197fc; }
  .on { fill: #1f2328; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    .no { fill: #ff938a; }
    .page { fill: #0d1117; stroke: #3d444d; }
    .node { fill: #151b23; stroke: #656c76; }
    .free { fill: #0d1117; }
    .reserved { fill: #656c76; }
    .on { fill: #1f2328; }
  }
"""


def svg(picture: Picture, outcomes: Sequence[Sequence[Outcome]]) -> str:
    """The file of a picture with what was decided for each of its cells."""
    nodes = picture.machine["machine"]["numa_nodes"]
    cell_width = len(nodes) * (_node_width(nodes[0]) + GAP) + 2 * PAD
    cell_height = _NODE_HEIGHT + 44
    columns = max(len(row.cells) for row in picture.rows)
    width = max(LABEL + columns * cell_width + PAD, 8 * len(picture.title) + 2 * PAD)
    height = 40 + len(picture.rows) * (cell_height + 8) + 30
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="{_NAMESPACE}" {size} role="img" aria-label="{escape(picture.title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>',
        _text(PAD, 24, picture.title, "title"),
    ]
    for r, (row, found) in enumerate(zip(picture.rows, outcomes, strict=True)):
        top = 40 + r * (cell_height + 8)
        for line, words in enumerate(_wrapped(row.heading, 15)):
            parts.append(_text(PAD, top + 34 + 15 * line, words, "quiet"))
        for c, (cell, outcome) in enumerate(zip(row.cells, found, strict=True)):
            left = LABEL + c * cell_width
            parts.append(_text(left, top + 14, cell.caption, "bold"))
            parts += _machine(picture, nodes, outcome, cell.pods[-1].name, left, top + 20)
            bad = "no" if outcome.verdict.startswith("refused") else ""
            parts.append(_text(left, top + cell_height - 8, outcome.verdict, bad))
    parts += _legend(picture, outcomes, height - 14)
    return "\n".join([*parts, "</svg>", ""])


def _machine(
    picture: Picture, nodes: Sequence[Any], outcome: Outcome, new: str, left: int, top: int
) -> Iterator[str]:
    """The NUMA nodes of one cell."""
    width, height = _node_width(nodes[0]), _NODE_HEIGHT
    for index, node in enumerate(nodes):
        x = left + index * (width + GAP)
        yield f'<rect class="node" x="{x}" y="{top}" width="{width}" height="{height}" rx="4"/>'
        yield _text(x + 6, top + 14, f"NUMA node {node['id']}", "quiet")
        if "cpus" in picture.shows:
            yield from _cpus(node["cores"], outcome, new, x + 6, top + 20)
    if "memory" in picture.shows:
        yield from _memory(outcome.memory, new, left, top + 22, width)


def _cpus(cores: Sequence[Any], outcome: Outcome, new: str, left: int, top: int) -> Iterator[str]:
    """Cores as columns of their threads; a gap stands between caches."""
    x = left
    for index, core in enumerate(cores):
        if index and core.get("uncore_cache_id") != cores[index - 1].get("uncore_cache_id"):
            x += GAP
        for row, cpu in enumerate(core["threads"]):
            y = top + row * SQUARE
            kind = _kind(outcome, cpu, new)
            size = SQUARE - 1
            yield f'<rect class="cpu {kind}" x="{x}" y="{y}" width="{size}" height="{size}"/>'
            # What is coloured is light on dark pages too.
            shade = "" if kind == "free" else " on"
            yield _text(x + SQUARE // 2, y + 13, str(cpu), f"small{shade}")
        x += SQUARE


def _kind(outcome: Outcome, cpu: int, new: str) -> str:
    if cpu not in outcome.owners:
        return "reserved" if cpu in outcome.reserved else "free"
    pod, container = outcome.owners[cpu]
    if pod != new:
        return "other"
    return "second" if container == "b" else "new"


def _memory(blocks: Iterable[Block], new: str, left: int, top: int, width: int) -> Iterator[str]:
    """Blocks of one node within it, and those of a group across its nodes, one below the other."""
    blocks = list(blocks)
    for row, block in enumerate(blocks):
        x = left + block.nodes[0] * (width + GAP) + 6
        whole = (block.nodes[-1] - block.nodes[0]) * (width + GAP) + width - 12
        share = block.size / (16 << 30) / len(block.nodes)
        y = top + row * 22
        yield f'<rect class="cpu free" x="{x}" y="{y}" width="{whole}" height="18"/>'
        kind = "new" if block.pod == new else "other"
        yield (
            f'<rect class="cpu {kind}" x="{x}" y="{y}" width="{round(whole * share)}" height="18"/>'
        )
        shade = "on" if share > 0.1 else ""
        yield _text(x + 4, y + 13, f"{block.size >> 30}Gi", shade)


def _legend(picture: Picture, outcomes: Sequence[Sequence[Outcome]], y: int) -> Iterator[str]:
    entries = [("other", "pods before it"), ("new", "the pod")]
    if any("b" in {c for _, c in o.owners.values()} for row in outcomes for o in row):
        entries = [("new", "container a"), ("second", "container b")]
    elif not any(len(cell.pods) > 1 for row in picture.rows for cell in row.cells):
        entries = entries[1:]
    if "cpus" in picture.shows:
        entries += [("reserved", "reserved"), ("free", "free")]
    widths = accumulate((30 + 7 * len(name) for _, name in entries), initial=PAD)
    for x, (kind, name) in zip(widths, entries, strict=False):
        yield f'<rect class="cpu {kind}" x="{x}" y="{y - 10}" width="12" height="12"/>'
        yield _text(x + 17, y, name, "quiet")


def _node_width(node: Mapping[str, Any]) -> int:
    caches = len({core.get("uncore_cache_id") for core in node["cores"]})
    return len(node["cores"]) * SQUARE + 12 + (caches - 1) * GAP + 4


def _text(x: int, y: int, words: str, kind: str = "") -> str:
    named = f' class="{kind.strip()}"' if kind.strip() else ""
    return f'<text{named} x="{x}" y="{y}">{escape(words)}</text>'


def _wrapped(words: str, width: int) -> list[str]:
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
