"""The hints that were chosen, by container, and which container ids stand for which container.

In memory only, as in the kubelet (TM-50..TM-52); after a restart it is filled from the record
of admitted pods where that record is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import PodUid


class HintStore:
    """Chosen hints and known container ids."""

    def __init__(self) -> None:
        self._hints: dict[PodUid, dict[str, TopologyHint]] = {}
        self._containers: dict[str, tuple[PodUid, str]] = {}

    def get(self, pod_uid: PodUid, container: str) -> TopologyHint:
        """The stored hint; without affinity and not preferred if there is none (TM-50)."""
        return self._hints.get(pod_uid, {}).get(container, NO_HINT)

    def put(self, pod_uid: PodUid, hints: Mapping[str, TopologyHint]) -> None:
        """Store the hints of a pod's containers over what was there."""
        if hints:
            self._hints.setdefault(pod_uid, {}).update(hints)

    def drop_pod(self, pod_uid: PodUid) -> None:
        """Forget a pod, its hints and its container ids."""
        self._hints.pop(pod_uid, None)
        self._containers = {
            cid: pair for cid, pair in self._containers.items() if pair[0] != pod_uid
        }

    def add_container(self, container_id: str, pod_uid: PodUid, container: str) -> None:
        """A container id stands for this container from now on (TM-51)."""
        self._containers[container_id] = (pod_uid, container)

    def remove_container(self, container_id: str) -> tuple[PodUid, str] | None:
        """A container id is gone; the container it stood for, or None if it was unknown.

        The hint goes with the last id that stands for the container (TM-51).
        """
        pair = self._containers.pop(container_id, None)
        if pair is None or pair in self._containers.values():
            return pair
        pod_uid, container = pair
        hints = self._hints.get(pod_uid)
        if hints is not None:
            hints.pop(container, None)
            if not hints:
                del self._hints[pod_uid]
        return pair

    def containers_of(self, pod_uid: PodUid) -> frozenset[str]:
        """Names of the pod's containers that some id stands for."""
        return frozenset(name for uid, name in self._containers.values() if uid == pod_uid)
