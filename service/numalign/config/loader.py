"""Loading the configuration from its file: the only part that touches the file system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from numalign.config.defaults import Defaults, default_directories
from numalign.config.from_document import settings_from_document
from numalign.config.kubelet_document import EXTENSION
from numalign.config.machine_source import memory_capacity
from numalign.config.settings import Settings
from numalign.document.problems import DocumentError
from numalign.document.text import read_document


def load_settings(
    path: Path | None,
    env: Mapping[str, str],
    is_root: bool,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of the file at `path`; None is an empty configuration.

    `env` gives HOME and the XDG directories, `is_root` chooses the system directories.
    `overrides` replaces keys of the `numalign` section, such as `runtimeDirectory`, and is
    checked like the file. Raises ConfigError naming every problem.
    """
    document = load_document(path)
    if overrides:
        document = _overridden(document, overrides)
    base = Path.cwd() if path is None else path.absolute().parent
    defaults = Defaults(
        directories=default_directories(env, is_root),
        base_directory=base,
        read_file=read_document,
        memory_capacity=memory_capacity,
    )
    return settings_from_document(document, defaults)


def load_document(path: Path | None) -> dict[str, object]:
    """The decoded file; an empty mapping for None or an empty file.

    Raises DocumentError where it cannot be decoded or is no mapping.
    """
    document = None if path is None else read_document(path)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise DocumentError(f"{path}: must be a mapping")
    return document


def _overridden(
    document: Mapping[str, object], overrides: Mapping[str, object]
) -> dict[str, object]:
    section = document.get(EXTENSION)
    if section is not None and not isinstance(section, Mapping):
        return dict(document)  # refused as what it is when it is read
    return {**document, EXTENSION: {**(section or {}), **overrides}}
