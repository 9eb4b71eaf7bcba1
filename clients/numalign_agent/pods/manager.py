"""The pods that sources want here, mirror pods kept apart (MIR-2, MIR-4)."""

from __future__ import annotations

from collections.abc import Mapping

from numalign_agent.pod import AgentPod


class PodManager:
    """Wanted pods by UID; static pods and their mirrors find each other by full name."""

    def __init__(self) -> None:
        self._pods: dict[str, AgentPod] = {}
        self._mirrors: dict[str, AgentPod] = {}
        self._by_name: dict[str, str] = {}
        self._mirrors_by_name: dict[str, str] = {}

    @property
    def pods(self) -> Mapping[str, AgentPod]:
        """All wanted pods, by UID; no mirror pods."""
        return self._pods

    @property
    def mirrors(self) -> Mapping[str, AgentPod]:
        """All mirror pods, by UID."""
        return self._mirrors

    def pod(self, pod_uid: str) -> AgentPod | None:
        """A wanted pod."""
        return self._pods.get(pod_uid)

    def put(self, pod: AgentPod) -> None:
        """Remember a pod, in place of what was known of it."""
        table, names = self._tables(pod)
        table[pod.uid] = pod
        names[pod.full_name] = pod.uid

    def remove(self, pod: AgentPod) -> None:
        """Forget a pod; one that is not known is no mistake."""
        table, names = self._tables(pod)
        table.pop(pod.uid, None)
        if names.get(pod.full_name) == pod.uid:
            del names[pod.full_name]

    def mirror_of(self, pod: AgentPod) -> AgentPod | None:
        """The mirror pod of a static pod."""
        uid = self._mirrors_by_name.get(pod.full_name)
        return None if uid is None or not pod.is_static else self._mirrors[uid]

    def static_of(self, mirror: AgentPod) -> AgentPod | None:
        """The pod that a mirror pod shows."""
        uid = self._by_name.get(mirror.full_name)
        return None if uid is None else self._pods[uid]

    def orphaned_mirrors(self) -> list[AgentPod]:
        """Mirror pods whose static pod is gone (MIR-5)."""
        return [mirror for mirror in self._mirrors.values() if self.static_of(mirror) is None]

    def _tables(self, pod: AgentPod) -> tuple[dict[str, AgentPod], dict[str, str]]:
        if pod.is_mirror:
            return self._mirrors, self._mirrors_by_name
        return self._pods, self._by_name
