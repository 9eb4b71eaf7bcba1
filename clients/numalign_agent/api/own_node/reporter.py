"""Registers this node, renews its lease and reports its status: thin around `objects`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.failures import explained
from numalign_agent.api.own_node.amounts import node_amounts
from numalign_agent.api.own_node.facts import NodeFacts
from numalign_agent.api.own_node.objects import lease_object, node_object, status_patch
from numalign_agent.api.server import ApiServer
from numalign_agent.trouble import Troubles
from numalign_client.errors import AdmissionError

_RENEWED_IN = 0.25
"""The part of its duration after which a lease is renewed."""

_log = get_logger("agent.node")


class NodeReporter:
    """Reports one node.

    `resources` asks the services what the node has. `not_ready` says why no pod can be started,
    None when all is well.
    """

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        facts: NodeFacts,
        resources: Callable[[], Awaitable[NodeResources]],
        not_ready: Callable[[], str | None],
        *,
        lease_seconds: float = 40.0,
        status_seconds: float = 10.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._server = server
        self._node_name = node_name
        self._facts = facts
        self._resources = resources
        self._not_ready = not_ready
        self._lease_seconds = lease_seconds
        self._status_seconds = status_seconds
        self._now = now
        self._troubles = Troubles(_log)

    def problems(self) -> Mapping[str, str]:
        """What of the node cannot be reported at present, and why."""
        return self._troubles.current()

    async def run(self) -> None:
        """Report until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat("lease", self._renew, self._lease_seconds * _RENEWED_IN))
            tasks.create_task(self._repeat("status", self._report, self._status_seconds))

    async def _repeat(self, what: str, once: Callable[[], Awaitable[None]], every: float) -> None:
        while True:
            try:
                await once()
            except ApiError as error:
                self._troubles.say(what, explained(error))
            else:
                self._troubles.mended(what)
            await asyncio.sleep(every)

    async def _report(self) -> None:
        node = await self._node()
        not_ready = self._not_ready()
        amounts = None
        try:
            amounts = node_amounts(await self._resources(), self._facts)
        except AdmissionError as error:  # no pod can be admitted: that is what there is to say
            not_ready = not_ready or f"Admission does not answer: {error}"
        patch = status_patch(
            node.get("status") or {},
            self._facts,
            amounts,
            not_ready=not_ready,
            now=self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        await self._server.patch(paths.node_status(self._node_name), {"status": patch})

    async def _node(self) -> Mapping[str, Any]:
        """The Node object, registered if there is none."""
        try:
            return await self._server.get(paths.node(self._node_name))
        except Refused as error:
            if not error.is_not_found:
                raise
        try:
            made = await self._server.create(paths.NODES, node_object(self._node_name, self._facts))
        except Refused as error:
            if not error.is_conflict:  # the other task was first
                raise
            return await self._server.get(paths.node(self._node_name))
        _log.info("registered the node", node=self._node_name)
        return made

    async def _renew(self) -> None:
        place = paths.lease(self._node_name)
        moment = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            found = await self._server.get(place)
        except Refused as error:
            if not error.is_not_found:
                raise
            node = await self._node()
            made = lease_object(self._node_name, node, self._lease_seconds, moment)
            await self._server.create(paths.LEASES, made)
            return
        wanted = lease_object(self._node_name, None, self._lease_seconds, moment)
        # Of this very version: somebody else's renewal must not be written over unseen.
        metadata = {**wanted["metadata"], **found["metadata"]}
        spec = {**(found.get("spec") or {}), **wanted["spec"]}
        await self._server.replace(place, {**wanted, "metadata": metadata, "spec": spec})
