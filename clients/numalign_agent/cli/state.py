"""Finding the journal of an agent, for commands that only read it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import click

from numalign.cli.options import config_option
from numalign_agent.journal.store import JournalStore

F = TypeVar("F", bound=Callable[..., Any])


def journal_options(command: F) -> F:
    """Add `--config` and `--state-directory`."""
    option = click.option(
        "--state-directory",
        type=click.Path(path_type=Path),
        help="State directory of the agent, instead of the configured one.",
    )
    return config_option(option(command))


def reading_journal(
    config: Path | None, state_directory: Path | None
) -> AbstractContextManager[JournalStore]:
    """The journal of an agent, which may be running. Raises StateError where there is none."""
    from numalign_agent.config.loading import IN_AGENT, load_settings  # noqa: PLC0415
    from numalign_agent.journal.journal import reading  # noqa: PLC0415

    overrides: dict[tuple[str, ...], object] = {}
    if state_directory is not None:
        overrides[*IN_AGENT, "stateDirectory"] = str(state_directory.absolute())
    return reading(load_settings(config, overrides).state_directory)
