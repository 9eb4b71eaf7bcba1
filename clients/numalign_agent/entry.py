"""Where the `numalign-agent` command begins; see `numalign.entry`."""

from __future__ import annotations

from numalign.entry import run


def main() -> None:
    """The `numalign-agent` command."""
    run("numalign-agent", "numalign_agent.cli.main", extra="agent")
