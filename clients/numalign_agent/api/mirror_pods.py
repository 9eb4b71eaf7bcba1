"""Shows static pods in the API (MIR-1, MIR-3, MIR-5, MIR-6): thin around `mirrors`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.mirrors import NoMirror, mirror_of, mirror_step, shows
from numalign_agent.api.server import ApiServer
from numalign_agent.pod import AgentPod

_log = get_logger("agent.mirror")


class ApiMirrorPods:
    """Creates and deletes mirror pods. `node` gives the Node object, None while it is unknown."""

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        node: Callable[[], Mapping[str, Any] | None],
    ) -> None:
        self._server = server
        self._node_name = node_name
        self._node = node

    async def reconcile(self, static: AgentPod, mirror: AgentPod | None) -> None:
        """Make the mirror pod be there and be the right one; errors are logged only."""
        node = self._node()
        step = mirror_step(static, mirror, node)
        if step.delete and mirror is not None and not await self._delete(mirror):
            return
        if step.create and node is not None:
            await self._create(static, node)

    async def delete(self, mirror: AgentPod) -> None:
        """Delete a mirror pod whose static pod is gone; errors are logged only."""
        await self._delete(mirror)

    async def _create(self, static: AgentPod, node: Mapping[str, Any]) -> None:
        try:
            await self._server.create(
                paths.pods_in(static.namespace), mirror_of(static, self._node_name, node)
            )
        except NoMirror as error:
            _log.error("cannot create the mirror pod", pod=_shown(static), why=str(error))
        except ApiError as error:
            if not await self._is_there(static, error):
                _log.error("cannot create the mirror pod", pod=_shown(static), why=str(error))
        else:
            _log.info("created the mirror pod", pod=_shown(static), pod_uid=static.uid)

    async def _is_there(self, static: AgentPod, error: ApiError) -> bool:
        """Whether the pod that is in the way is the very one that was to be created."""
        if not (isinstance(error, Refused) and error.is_conflict):
            return False
        try:
            found = await self._server.get(paths.pod(static.namespace, static.name))
        except ApiError:
            return False
        return shows(AgentPod(found), static)

    async def _delete(self, mirror: AgentPod) -> bool:
        """Whether there is no such mirror pod any more."""
        place = paths.pod(mirror.namespace, mirror.name)
        try:
            await self._server.delete(place, uid=mirror.uid, grace_seconds=0)
        except ApiError as error:
            if isinstance(error, Refused) and error.is_not_found:
                return True
            if not (isinstance(error, Refused) and error.is_conflict):
                _log.error("cannot delete the mirror pod", pod=_shown(mirror), why=str(error))
            return False
        _log.info("deleted the mirror pod", pod=_shown(mirror), pod_uid=mirror.uid)
        return True


def _shown(pod: AgentPod) -> str:
    return f"{pod.namespace}/{pod.name}"
