"""Loading the agent's configuration: the only part of it that looks at files and environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from numalign.config.defaults import default_directories
from numalign.config.loader import load_document
from numalign_agent.config.reading import AGENT, AgentDefaults, read_settings
from numalign_agent.config.settings import AgentSettings

Overrides = Mapping[tuple[str, ...], object]
"""Values from the command line, by the path of the key that they replace."""

IN_AGENT = ("numalign", AGENT)
"""Where the agent's own keys are."""


def load_settings(path: Path | None, overrides: Overrides) -> AgentSettings:
    """The settings of the file at `path` (None: an empty one), with `overrides` on top.

    Raises ConfigError naming every problem; an override is checked as the file is.
    """
    document = document_with(path, overrides)
    defaults = AgentDefaults(
        hostname=socket.gethostname(),
        directories=default_directories(os.environ, os.geteuid() == 0),
        base_directory=Path.cwd() if path is None else path.absolute().parent,
    )
    return read_settings(document, defaults)


def document_with(path: Path | None, overrides: Overrides) -> dict[str, object]:
    """The document at `path` (None: an empty one), with `overrides` on top.

    Raises ConfigError for a file that cannot be read.
    """
    document: dict[str, object] = load_document(path)
    for keys, value in overrides.items():
        document = _with(document, keys, value)
    return document


def _with(
    document: Mapping[str, object], keys: tuple[str, ...], value: object
) -> dict[str, object]:
    first, *rest = keys
    if not rest:
        return {**document, first: value}
    inner = document.get(first)
    if inner is not None and not isinstance(inner, Mapping):
        return dict(document)  # refused as what it is when it is read
    return {**document, first: _with(inner or {}, tuple(rest), value)}
