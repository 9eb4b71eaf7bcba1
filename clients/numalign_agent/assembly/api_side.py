"""What an agent has when there is an API server: its Node object, mirror pods, statuses, pods.

Separate from the rest of the assembly, because an agent without an API server imports none of
it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib.metadata import version
from typing import Any

from numalign.kube.core.v1 import core_pb2
from numalign.telemetry.logs import get_logger
from numalign_agent.admitting.calls import CALL_SECONDS, AdmissionCalls
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError
from numalign_agent.api.mirror_pods import ApiMirrorPods
from numalign_agent.api.node_follower import NodeFollower
from numalign_agent.api.node_teller import NodeTeller, read_node
from numalign_agent.api.own_node.facts import read_facts
from numalign_agent.api.own_node.reporter import NodeReporter
from numalign_agent.api.server import ApiServer, connect
from numalign_agent.api.status_sink import ApiStatusSink
from numalign_agent.config.settings import ApiSettings
from numalign_agent.sources.api import ApiSource
from numalign_agent.sources.port import PodSource
from numalign_agent.status.port import MirrorPods, PodQuestions, StatusSink

_log = get_logger("api")


class FollowedNode:
    """See admitting.port.NodeObjects."""

    def __init__(self, server: ApiServer, node_name: str, follower: NodeFollower) -> None:
        self._server = server
        self._node_name = node_name
        self._follower = follower

    def current(self) -> core_pb2.Node | None:
        """As it was last seen."""
        node = self._follower.node()
        return None if node is None else read_node(node)

    async def read(self) -> core_pb2.Node | None:
        """As it is now."""
        try:
            return read_node(await self._server.get(paths.node(self._node_name)))
        except ApiError as error:
            _log.warning("the Node object cannot be read anew", error=str(error))
            return None


class ApiSide:
    """Everything that speaks to one API server. `not_ready`: why this node cannot run pods."""

    def __init__(self, server: ApiServer, node_name: str, settings: ApiSettings) -> None:
        self._server = server
        self._node_name = node_name
        self._settings = settings
        self._calls: AdmissionCalls | None = None
        self._teller = NodeTeller(self._tell)
        self._follower = NodeFollower(server, node_name, (self._teller.take,))
        self._sink: ApiStatusSink | None = None
        self.node = FollowedNode(server, node_name, self._follower)
        self.mirrors: MirrorPods = ApiMirrorPods(server, node_name, self._follower.node)

    def use(self, calls: AdmissionCalls) -> None:
        """Tell Admission of the Node object over these."""
        self._calls = calls

    def sink(self, questions: PodQuestions) -> StatusSink:
        """Where statuses and events go."""
        self._sink = ApiStatusSink(self._server, self._node_name, questions)
        return self._sink

    def source(self) -> PodSource:
        """The pods of this node."""
        return ApiSource(self._server, self._node_name, self._follower.synced)

    def tasks(self, not_ready: Callable[[], str | None]) -> list[Coroutine[Any, Any, None]]:
        """What has to run besides the source."""
        tasks = [self._follower.run(), self._teller.run()]
        if self._sink is not None:
            tasks.append(self._sink.run())
        if self._settings.own_node and self._calls is not None:
            reporter = NodeReporter(
                self._server,
                self._node_name,
                read_facts(version("numalign")),
                self._calls.client.get_node_resources,
                not_ready,
                lease_seconds=self._settings.lease_seconds,
                status_seconds=self._settings.status_every,
            )
            tasks.append(reporter.run())
        return tasks

    async def close(self) -> None:
        """Close the connection."""
        await self._server.close()

    async def _tell(self, node: core_pb2.Node) -> None:
        if self._calls is not None:
            await self._calls.client.set_node(node, timeout=CALL_SECONDS)


async def open_api(node_name: str, settings: ApiSettings) -> ApiSide:
    """The API server of the settings. Nothing is sent yet. Raises ApiError for bad credentials."""
    server = await connect(settings.kubeconfig, settings.context)
    return ApiSide(server, node_name, settings)
