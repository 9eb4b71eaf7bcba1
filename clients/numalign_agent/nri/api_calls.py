"""What the plugin asks of an API server: one pod, to evict one, and to show an event.

Separate from who asks: the plugin lives without an API server as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numalign_agent.api.errors import Refused
from numalign_agent.api.paths import events_in, pod
from numalign_agent.api.server import ApiServer, connect
from numalign_agent.pod import AgentPod

_COMPONENT = "numalign-agent"
_LONGEST_MESSAGE = 1024


class PodApi:
    """One API server. Every call may raise ApiError."""

    def __init__(self, api: ApiServer, node_name: str) -> None:
        self._api = api
        self._node_name = node_name

    @classmethod
    async def connected(cls, kubeconfig: Path | None, context: str, node_name: str) -> PodApi:
        """The server of a kubeconfig (None: of the pod's own service account), not asked yet."""
        return cls(await connect(kubeconfig, context), node_name)

    async def read(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """A pod as the API has it; None if there is none of this name."""
        try:
            return await self._api.get(pod(namespace, name))
        except Refused as error:
            if error.is_not_found:
                return None
            raise

    async def evict(self, namespace: str, name: str, uid: str) -> bool:
        """Evict a pod. False: it is gone, or there is another one of its name.

        A disruption budget may not allow it, which is Refused with status 429.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        try:
            await self._api.create(f"{pod(namespace, name)}/eviction", eviction)
        except Refused as error:
            if error.is_not_found or error.is_conflict:
                return False
            raise
        return True

    async def warn(self, about: AgentPod, reason: str, message: str) -> None:
        """Show a Warning event of a pod."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{about.name}.", "namespace": about.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
            },
            "type": "Warning",
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": _COMPONENT, "host": self._node_name},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._node_name,
        }
        await self._api.create(events_in(about.namespace), event)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()
