# ruff: noqa: INP001 - a script by itself
"""Writes the table of all metrics into docs/observability.md, where a test expects it."""

from __future__ import annotations

from pathlib import Path

from numalign.process.metrics import metrics_table

PAGE = Path(__file__).parents[1] / "docs" / "observability.md"
BEGIN, END = "<!-- metrics -->\n", "<!-- /metrics -->"


def main() -> None:
    """Replace what stands between the two marks."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + metrics_table() + END + after)


if __name__ == "__main__":
    main()
