"""Moves containers that run when CPUs change hands, before a new one starts on them.

Besides, it looks now and then where they are, and has those put back that somebody else has moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from numalign.telemetry.logs import get_logger
from numalign.v1 import admission_pb2 as ad
from numalign_agent.placements.pool import NOTHING_KEPT_APART, Given, Member
from numalign_agent.runners.port import ContainerPhase, Placement, PodRunner, RunnerFailed

RETRY_SECONDS = 10.0

UNPINNED, NOT_PLACED = "ContainerUnpinned", "PlacementFailed"
"""Reasons of events: a container was found where it should not be; it cannot be put back."""

Strayed = Callable[[str, str, str, str], None]
"""Hears of pod UID, container, reason and what was found."""

_log = get_logger("placements")


def _told_nobody(pod_uid: str, container: str, reason: str, found: str) -> None: ...


class PlacementKeeper:
    """Knows where every container belongs, and has it moved."""

    def __init__(self, runner: PodRunner, strayed: Strayed = _told_nobody) -> None:
        self._runner = runner
        self._strayed = strayed
        self._stuck: dict[str, str] = {}
        self._pool = NOTHING_KEPT_APART
        self._moving = asyncio.Lock()
        self._wanted = asyncio.Event()

    async def restore(self) -> None:
        """Learn of the containers that ran before this agent did."""
        for pod in await self._runner.list_pods():
            for container in pod.containers:
                if container.phase is ContainerPhase.RUNNING:
                    member = Member(pod.uid, container.name)
                    self._pool = self._pool.with_member(container.id, member)

    def granted(self, pod_uid: str, answer: ad.AdmitResponse) -> None:
        """Admission said what a pod holds."""
        given = Given(
            {each.container: each.cpus for each in answer.allocations},
            answer.pod_allocation.cpus,
        )
        self._pool = self._pool.with_given(pod_uid, given)
        self._wanted.set()

    def heard(self, cpus: str) -> None:
        """Admission said which CPUs are shared now."""
        self._pool = self._pool.heard(cpus)
        self._wanted.set()

    async def starting(
        self, container_id: str, pod_uid: str, container: str, placement: Placement
    ) -> None:
        """A container is about to start: when this returns nobody else is on its CPUs.

        Raises RunnerFailed where somebody could not be moved away.
        """
        if not placement.cpus:
            return
        member = Member(
            pod_uid,
            container,
            own=placement.cpus if placement.exclusive_cpus else "",
            exclusive=placement.exclusive_cpus,
            applied=placement,
        )
        self._pool = self._pool.with_member(container_id, member)
        if placement.exclusive_cpus:
            await self._move(but=container_id)

    def ended(self, *container_ids: str) -> None:
        """Containers do not run any more."""
        for container_id in container_ids:
            self._stuck.pop(container_id, None)
        self._pool = self._pool.without(container_ids)

    async def run(self) -> None:
        """Move containers whenever CPUs have changed hands, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._move()
            except RunnerFailed as error:
                _log.error("a container is not where it belongs", error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
                self._wanted.set()

    async def watch(self, every: float) -> None:
        """Put back what was moved, every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(every)
            await self.put_back()

    async def put_back(self) -> None:
        """Have every container put back that is not where it was put."""
        for container_id in tuple(self._pool.members):
            async with self._moving:
                member = self._pool.members.get(container_id)
                if member is None or member.applied is None or not member.applied.cpus:
                    continue
                try:
                    wrong = await self._runner.put_back(container_id, member.applied)
                except RunnerFailed as error:
                    self._cannot(container_id, member, str(error))
                    continue
            self._stuck.pop(container_id, None)
            if wrong:
                _log.warning("put back", container=container_id, pod=member.pod_uid, found=wrong)
                self._strayed(member.pod_uid, member.container, UNPINNED, wrong)

    def _cannot(self, container_id: str, member: Member, why: str) -> None:
        """Said once for as long as it is for the same reason."""
        if self._stuck.get(container_id) != why:
            self._stuck[container_id] = why
            _log.error("cannot be put back", container=container_id, pod=member.pod_uid, why=why)
            self._strayed(member.pod_uid, member.container, NOT_PLACED, why)

    async def _move(self, *, but: str = "") -> None:
        failure: RunnerFailed | None = None
        async with self._moving:
            for container_id, placement in self._pool.moves().items():
                if container_id == but:
                    continue
                try:
                    await self._runner.update_placement(container_id, placement)
                except RunnerFailed as error:
                    failure = error
                    continue
                self._applied(container_id, placement)
        if failure is not None:
            raise failure

    def _applied(self, container_id: str, placement: Placement) -> None:
        member = self._pool.members.get(container_id)
        if member is not None:
            applied = replace(member, applied=placement)
            self._pool = self._pool.with_member(container_id, applied)
