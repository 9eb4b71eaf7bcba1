"""The keeper of a run: has its pod admitted, keeps it in its place, and gives everything back.

The front's end of a socket is what it goes by: when that is closed, the run is over, whether the
front closed it or was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import socket
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from numalign.cli.failure import describe
from numalign.errors import NumalignError
from numalign.model.quantity import Quantity
from numalign_agent.cgroups.choice import Chosen
from numalign_agent.cgroups.hugepages import limits_of
from numalign_agent.config.enforce import Enforce
from numalign_agent.containers.life import not_applied
from numalign_agent.pod import AgentPod
from numalign_agent.run.command import Start, memory_prefix
from numalign_agent.run.holder import Holder, holder_of
from numalign_agent.run.placing import Belonging
from numalign_agent.run.pod import CONTAINER, Asked, pod_document
from numalign_agent.run.tree import here, is_gone, kill_below
from numalign_agent.runners.placer import CannotPlace
from numalign_agent.runners.port import Placement
from numalign_agent.runners.process.proc import open_process
from numalign_client.async_client import AsyncClient
from numalign_client.errors import AdmissionError, ServiceUnavailable
from numalign_client.results import (
    AdmittedPod,
    Changed,
    Decision,
    Existing,
    Released,
    SharedCpus,
    Verdict,
)

_GIVE_BACK_SECONDS = 20.0
_FOLLOW_AGAIN_SECONDS = 1.0
_KILLED_SECONDS = 5.0
_LOOK_SECONDS = 10.0

Say = Callable[[str], None]
"""Writes a line to standard error."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `timeout` is in seconds, for the decision."""

    asked: Asked
    holder: Holder
    owner: str
    admission: Path
    timeout: float


class Refused(Exception):
    """The command must not start; `lines` say why."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(slots=True)
class _Kept:
    """Where a run belongs at present."""

    belonging: Belonging


class Keeper:
    """Keeps one run from its admission to its release.

    `say` is for what went wrong, `note` for what may be of interest.
    """

    def __init__(self, run: Run, chosen: Chosen, say: Say, note: Say) -> None:
        self._run = run
        self._uid = run.holder.uid
        self._chosen = chosen
        self._placer = chosen.placer
        self._say = say
        self._note = note
        self._client = AsyncClient(run.admission, timeout=run.timeout)
        self._asked = False
        self._moving = asyncio.Lock()

    async def keep(self, front: socket.socket) -> bool:
        """Keep the run until the front is gone; whether everything was given back."""
        reader, writer = await asyncio.open_connection(sock=front)
        over = asyncio.create_task(reader.read())
        keeping = asyncio.create_task(self._start_and_follow(writer))
        try:
            await asyncio.wait((over, keeping), return_when=asyncio.FIRST_COMPLETED)
            if keeping.done() and not keeping.cancelled() and keeping.exception() is None:
                await over
        finally:
            keeping.cancel()
            over.cancel()
            outcomes = await asyncio.gather(keeping, over, return_exceptions=True)
            given_back = await self._give_back()
            await self._client.close()
            writer.close()
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        return given_back

    async def _start_and_follow(self, writer: asyncio.StreamWriter) -> None:
        try:
            start, belonging = await self._started()
        except (Refused, CannotPlace, AdmissionError, NumalignError) as error:
            _answer(writer, {"refused": _lines(error)})
            return
        _answer(writer, {"start": asdict(start)})
        async with asyncio.TaskGroup() as group:
            kept = _Kept(belonging)
            group.create_task(self._follow(kept))
            group.create_task(self._watch(kept))

    async def _started(self) -> tuple[Start, Belonging]:
        run = self._run
        await self._release_left_behind()
        document = pod_document(run.asked, self._uid, run.holder.pid)
        self._asked = True
        decision = await self._client.admit(document, owner=run.owner, explain="summary")
        if decision.verdict is not Verdict.ADMITTED:
            why = [await self._with_names(decision.summary)] if decision.summary else []
            raise Refused(f"{run.asked.command[0]}: {decision}", *why)
        lacking = devices_lacking(run.asked, decision)
        if lacking:
            raise Refused(*lacking)
        for warning in decision.warnings:
            self._say(warning)
        # Its edits are what a process cannot be given as a container is.
        prepared = await self._client.messages.prepare_container(
            self._uid, CONTAINER, timeout=run.timeout
        )
        unapplied = not_applied(prepared.edits)
        if unapplied:
            self._say(f"not applied to a process: {', '.join(unapplied)}")
        placement = Placement(
            cpus=prepared.cpus,
            exclusive_cpus=prepared.exclusive_cpus,
            mems=prepared.mems,
            environment=dict(prepared.edits.envs),
            hugepages=limits_of(prepared.allocation.memory),
        )
        start = await self._place(AgentPod(document), placement)
        await self._client.add_container(self._uid, CONTAINER, self._uid)
        return start, Belonging.begun(placement)

    async def _with_names(self, text: str) -> str:
        """The text with the pods that it mentions by name."""
        from numalign.cli.tables.explanation import with_names  # noqa: PLC0415 - only when refused

        listed = await self._client.admissions(timeout=self._run.timeout)
        return with_names(text, {pod.pod_uid: f"{pod.namespace}/{pod.name}" for pod in listed.pods})

    async def _place(self, pod: AgentPod, placement: Placement) -> Start:
        place = await asyncio.to_thread(self._placer.place, pod, CONTAINER, self._uid, placement)
        by_affinity = self._chosen.enforce is Enforce.AFFINITY
        prefix = memory_prefix(placement.mems) if by_affinity else ()
        self._note(told(placement, self._chosen, bound=not by_affinity or bool(prefix)))
        return Start(
            cgroup_procs=tuple(map(str, place.cgroup_procs)),
            cpus=None if place.cpus is None else tuple(sorted(place.cpus)),
            environment=placement.environment,
            prefix=prefix,
        )

    async def _follow(self, kept: _Kept) -> None:
        """Move the run when its CPUs change, until cancelled."""
        while True:
            try:
                async for event in self._client.watch():
                    match event:
                        case SharedCpus(cpus=cpus):
                            kept.belonging = kept.belonging.heard_shared(cpus)
                        case Existing(pod=pod) | Changed(pod=pod) if pod.pod_uid == self._uid:
                            kept.belonging = kept.belonging.heard_own(_own_cpus(pod))
                        case Released(pod_uid=self._uid):
                            self._say("the pod was released; its CPUs may be given to others")
                        case _:
                            continue
                    async with self._moving:
                        kept.belonging = await self._moved(kept.belonging)
            except AdmissionError as error:
                self._say(f"changes of CPUs are not heard: {error}")
            await asyncio.sleep(_FOLLOW_AGAIN_SECONDS)

    async def _watch(self, kept: _Kept) -> None:
        """Put the run back where somebody else has moved it, until cancelled."""
        said = ""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            async with self._moving:
                try:
                    wrong = await asyncio.to_thread(
                        self._placer.put_back,
                        self._uid,
                        self._run.holder.pid,
                        kept.belonging.applied,
                    )
                except CannotPlace as error:
                    wrong = f"cannot be put back: {error}"
                    if wrong != said:
                        self._say(wrong)
                    said = wrong
                    continue
            said = ""
            if wrong:
                self._say(f"put back: {wrong}")

    async def _moved(self, belonging: Belonging) -> Belonging:
        move = belonging.move
        if move is None:
            return belonging
        try:
            await asyncio.to_thread(self._placer.update, self._uid, self._run.holder.pid, move)
        except CannotPlace as error:
            self._say(f"CPUs {move.cpus} are not applied: {error}")
            return belonging
        return Belonging(belonging.own, belonging.shared, move)

    async def _release_left_behind(self) -> None:
        """Give back what runs held that were killed together with their keepers."""
        where = here()
        try:
            # Asked once: somebody waits at a terminal.
            listed = await self._client.messages.list_admissions(
                owner=self._run.owner, timeout=self._run.timeout
            )
        except ServiceUnavailable as error:
            raise Refused(
                f"cannot reach Admission at {self._run.admission}: {error} "
                '(is "numalign serve" running? --socket names another place)'
            ) from error
        for pod in listed.admissions:
            holder = holder_of(pod.pod_uid)
            if holder is None or not is_gone(holder, where):
                continue
            try:
                await asyncio.to_thread(self._placer.remove, pod.pod_uid)
                await self._client.release(pod.pod_uid, missing_ok=True)
            except (AdmissionError, CannotPlace) as error:
                self._say(f"{pod.name} is gone and still holds its resources: {error}")
            else:
                self._say(f"released {pod.name}, which is gone")

    async def _give_back(self) -> bool:
        """End what is left of the command, then release the pod; whether all of it worked."""
        try:
            await asyncio.to_thread(self._end_command)
            await asyncio.to_thread(self._placer.remove, self._uid)
            if self._asked:
                await self._client.remove_container(self._uid, timeout=_GIVE_BACK_SECONDS)
                await self._client.release(self._uid, missing_ok=True, timeout=_GIVE_BACK_SECONDS)
        except (AdmissionError, CannotPlace) as error:
            self._say(f"not released, the next run will do it: {error}")
            return False
        return True

    def _end_command(self) -> None:
        """Kill the command, if it is still there, and wait: its CPUs are to be free."""
        holder = self._run.holder
        process = open_process(holder.pid, holder.start)
        if process is None:
            return
        try:
            kill_below(holder.pid)
            select.select([process], [], [], _KILLED_SECONDS)
        finally:
            os.close(process)


def devices_lacking(asked: Asked, decision: Decision) -> list[str]:
    """A line for each resource of devices that none were given of.

    A node admits pods that ask for what no plugin of it has ever offered: it is not its own.
    """
    given = {
        device.resource: len(device.ids)
        for allocation in decision.allocations
        for device in allocation.devices
    }
    return [
        f"{resource}: {amount} asked for, {given.get(resource, 0)} given: no device plugin on "
        "this node offers it"
        for resource, amount in asked.amounts.items()
        if "/" in resource and given.get(resource, 0) < Quantity.parse(amount).value()
    ]


def told(placement: Placement, chosen: Chosen, *, bound: bool) -> str:
    """One line on where the command runs and what sees to it."""
    parts = []
    if placement.cpus:
        kind = "its own" if placement.exclusive_cpus else "shared"
        parts.append(f"CPUs {placement.cpus} ({kind})")
    if placement.mems:
        memory = f"memory of NUMA nodes {placement.mems}"
        parts.append(memory if bound else f"{memory}, not enforced: there is no numactl")
    where = ", ".join(parts) or "anywhere"
    because = f" ({chosen.lacking})" if chosen.lacking else ""
    return f"runs on {where}; by {chosen.enforce.value}{because}"


def _own_cpus(pod: AdmittedPod) -> str:
    return next((a.cpus for a in pod.allocations if a.container == CONTAINER), "")


def _lines(error: Exception) -> Sequence[str]:
    if isinstance(error, Refused):
        return error.lines
    if isinstance(error, AdmissionError):
        return [*(f"{v.field}: {v.description}" for v in error.violations)] or [
            f"{error.message} ({error.code.name})"
        ]
    return describe(error) or (str(error),)


def _answer(writer: asyncio.StreamWriter, document: object) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(json.dumps(document).encode() + b"\n")
