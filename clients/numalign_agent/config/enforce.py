"""The ways in which containers that are processes are put where Admission wants them."""

from __future__ import annotations

from enum import StrEnum


class Enforce(StrEnum):
    """`enforce` of the agent, and `--enforce` of `numalign run`."""

    AUTO = "auto"
    """By control groups where they can be had, else by affinity."""

    CGROUP = "cgroup"
    AFFINITY = "affinity"
    NONE = "none"
