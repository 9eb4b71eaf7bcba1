"""What the configuration says about the control groups of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from numalign_agent.cgroups.settings import CgroupSettings
from numalign_agent.config.loading import load_settings


def cgroup_settings(config: Path | None, parent: PurePosixPath | None) -> CgroupSettings:
    """The `cgroups` section of the agent's configuration, with another parent if one is named.

    Raises ConfigError for a file that cannot be used.
    """
    settings = CgroupSettings() if config is None else load_settings(config, {}).cgroups
    return settings if parent is None else replace(settings, parent=parent)
