"""Which pods may hold something, as the providers are told: the active pods.

In memory. With a trusted record the record alone decides. Where pods are judged again after
a restart (`compatibility: kubelet`), only pods judged since the start, and those an agent
names, are active, and nothing is cleaned up before the sources are ready.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.model.ids import PodUid
from numalign.v1 import types_pb2 as pb


class Picture:
    """The active pods of the node."""

    def __init__(self, *, recorded: Iterable[PodUid], waits_for_sources: bool) -> None:
        self._waits = waits_for_sources
        self._active: set[PodUid] = set() if waits_for_sources else set(recorded)
        self._running: dict[str, tuple[pb.RunningContainer, ...]] = {}
        self.sources_ready = not waits_for_sources

    @property
    def active(self) -> frozenset[PodUid]:
        """The active pods."""
        return frozenset(self._active)

    @property
    def running(self) -> tuple[pb.RunningContainer, ...]:
        """Containers that run, as their owners last said."""
        return tuple(c for containers in self._running.values() for c in containers)

    def admitted(self, pod_uid: PodUid) -> None:
        """The pod is active from now on."""
        self._active.add(pod_uid)

    def gone(self, pod_uid: PodUid) -> None:
        """The pod ended, or was refused."""
        self._active.discard(pod_uid)

    def heard(
        self,
        owner: str,
        named: Iterable[PodUid],
        running: tuple[pb.RunningContainer, ...],
        *,
        ready: bool,
    ) -> None:
        """An owner said what it has."""
        self._running[owner] = running
        if self._waits:
            self._active.update(named)
            self.sources_ready = ready
