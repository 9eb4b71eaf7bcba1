"""The `cgroups` section of the agent's configuration, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from numalign.document.section import Section, shown
from numalign_agent.cgroups.plan import Partition
from numalign_agent.cgroups.tree import ROOT

DEFAULT_PARENT = PurePosixPath("/numalign")

_KEYS = ("root", "parent", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupSettings:
    """Where groups of containers are made, and what becomes of exclusive CPUs in them.

    `root` is where cgroup version 2 is mounted; `parent` the group below it, as `/a/b`, that
    holds one group for each container.
    """

    root: Path = ROOT
    parent: PurePosixPath = DEFAULT_PARENT
    partition: Partition = Partition.MEMBER


def read_cgroups(section: Section) -> CgroupSettings:
    """Read the section; what is wrong is added to its problems."""
    section.refuse_unknown(_KEYS)
    default = CgroupSettings()
    root = section.text("root", str(default.root))
    if not root.startswith("/"):
        section.wrong("root", f"must be an absolute path, not {shown(root)}")
    parent = section.text("parent", str(default.parent))
    wrong = wrong_group(parent)
    if wrong:
        section.wrong("parent", wrong)
    return CgroupSettings(
        root=Path(root),
        parent=default.parent if wrong else PurePosixPath(parent),
        partition=section.choice("partition", default.partition),
    )


def wrong_group(text: str) -> str:
    """Why a text is no group below the root of the control groups; empty if it is one."""
    parts = PurePosixPath(text).parts
    if not text.startswith("/") or text.startswith("//") or ".." in parts or "\0" in text:
        return f"must be a group such as {DEFAULT_PARENT}, not {shown(text)}"
    return ""
