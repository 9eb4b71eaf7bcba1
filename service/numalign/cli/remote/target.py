"""Another node of the cluster, as a user names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteNode:
    """A node of the cluster, and where numalign is in it. An empty context is the current one."""

    node: str
    namespace: str
    context: str = ""
