"""A node in processes of its own that can be killed at a chosen place, loaded, and judged."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.integration.agents import Agent
from tests.integration.books import faults_of
from tests.integration.kill_points import LOST
from tests.integration.node_document import pod, write_document

from numalign.config.settings import CORE_SERVICES, Service
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb

PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)
WAIT_SECONDS = 60.0
AGENTS = 3


class World:
    """Services in processes, agents that load them, and what each process is to die of.

    `together` runs all services in one process. Processes are named by their service, or
    `all`. Open it with `open_world`.
    """

    dies_at_places = True
    """Whether places to die at are built into the processes."""

    environment: Mapping[str, str] | None = None
    """Variables of the processes; None for those of this one."""

    def __init__(self, directory: Path, *, together: bool, seed: int) -> None:
        self.directory = directory
        self.together = together
        self._config = write_document(directory)
        self._zygote: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()
        self._running: dict[str, int] = {}
        self._pids: dict[str, int] = {}
        self._forgiven: dict[str, int] = {}
        self._tokens = 0
        self._channels = {
            service: open_channel(directory / "run" / f"{service}.sock")
            for service in CORE_SERVICES
        }
        self.admission = ad_grpc.AdmissionStub(self._channels[Service.ADMISSION])
        self._providers = [hp_grpc.HintProviderStub(self._channels[s]) for s in PROVIDERS]
        self._admitted = asyncio.Event()
        self.agents = [
            Agent(
                f"agent{number}",
                self.admission,
                random.Random(f"{seed}-{number}"),
                heard=self._admitted,
            )
            for number in range(AGENTS)
        ]

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the processes."""
        return ("all",) if self.together else tuple(service.value for service in CORE_SERVICES)

    async def start(self) -> None:
        """Start everything."""
        self._zygote = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.zygote",
            cwd=Path(__file__).parents[2],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self.environment,
        )
        for process in self.processes:
            await self.restart(process)

    async def restart(self, process: str, *, uptime: int = 0, dies_at: str | None = None) -> None:
        """Start a process that is not running; it dies when it comes to `dies_at`.

        `uptime` is in seconds and not 0 where the machine is to seem to run for longer.
        """
        assert self._zygote is not None
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        if dies_at is None:
            self._plan(process).unlink(missing_ok=True)
        else:
            self.kill_when(process, dies_at, 1)
        request = {
            "service": None if process == "all" else process,
            "config": str(self._config),
            "plan": str(self._plan(process)) if self.dies_at_places else None,
            "log": str(self._log(process)),
            "uptime": uptime,
        }
        # Its answers come in the order of what it is asked, and one at a time can wait for them.
        async with self._asking:
            self._zygote.stdin.write(json.dumps(request).encode() + b"\n")
            await self._zygote.stdin.drain()
            pid = int(await asyncio.wait_for(self._zygote.stdout.readline(), WAIT_SECONDS))
        self._running[process] = os.pidfd_open(pid)
        self._pids[process] = pid

    async def close(self) -> None:
        """End everything that was started here."""
        for channel in self._channels.values():
            await channel.close()
        for descriptor in self._running.values():
            os.close(descriptor)
        if self._zygote is not None:
            # It ends what it started when there is nobody left to ask it for more.
            assert self._zygote.stdin is not None
            self._zygote.stdin.close()
            await asyncio.wait_for(self._zygote.wait(), WAIT_SECONDS)

    def kill_when(self, process: str, place: str, count: int, also: Iterable[str] = ()) -> None:
        """Let a process die when it reaches a place for the count-th time from now.

        The running processes `also` die in the same moment.
        """
        self._tokens += 1
        others = [str(self._pids[other]) for other in also]
        plan = self._plan(process)
        draft = plan.with_suffix(".draft")
        draft.write_text(" ".join((place, str(count), str(self._tokens), *others)))
        draft.rename(plan)

    def kill(self, process: str) -> None:
        """Kill a process now."""
        signal.pidfd_send_signal(self._running[process], signal.SIGKILL)

    async def stop(self, process: str) -> None:
        """Ask a process to stop, and wait until it has."""
        signal.pidfd_send_signal(self._running[process], signal.SIGTERM)
        await self._dead(process)

    async def load_until_admitted(self) -> None:
        """Have the agents call until one of them was told that a pod is admitted."""
        async with self._loaded():
            self._admitted.clear()
            await asyncio.wait_for(self._admitted.wait(), WAIT_SECONDS)

    async def load_until_death(self, *processes: str, delay: float | None = None) -> None:
        """Have the agents call until these are dead; after `delay` seconds kill them."""
        async with self._loaded():
            if delay is not None:
                await asyncio.sleep(delay)
                for process in processes:
                    self.kill(process)
            for process in processes:
                await self._dead(process)
            # Some calls are made while it is down.
            await asyncio.sleep(0.01)

    @asynccontextmanager
    async def _loaded(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        callers = [asyncio.ensure_future(agent.run(stop)) for agent in self.agents]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*callers)

    async def hold_something(self) -> None:
        """See that every provider holds something for a pod, whatever the agents do."""
        request = ad.AdmitRequest(pod=pod("keeper", memory="1Mi"), owner="keeper")
        while (
            await self.admission.Admit(request, timeout=WAIT_SECONDS)
        ).verdict != pb.VERDICT_ADMITTED:
            await self.load_until_admitted()

    def lose_state(self, process: str) -> None:
        """Remove the state file of a process that is not running."""
        for path in (self.directory / "state").glob(f"{process}.db*"):
            path.unlink()

    async def ready(self) -> None:
        """Wait until the Topology Manager has told every provider the picture and decides."""
        request = ad.AdmitRequest(pod=pod("probe", gpus=0), dry_run=True)
        await self._until_answered(self.admission.Admit, request)

    async def judge(self) -> list[str]:
        """Everything that is wrong with the node now; it must be ready, and nobody calling."""
        for agent in self.agents:
            await agent.settle()
        listing = await self.admission.ListAdmissions(
            ad.ListAdmissionsRequest(), timeout=WAIT_SECONDS
        )
        states = [
            await p.GetState(hp.GetStateRequest(), timeout=WAIT_SECONDS) for p in self._providers
        ]
        faults = faults_of(listing, states)
        faults += [line for process in self.processes for line in self._losses(process)]
        for agent in self.agents:
            faults += agent.check(listing)
        for service, channel in self._channels.items():
            health = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_SECONDS)
            if answer.status != health_pb2.HealthCheckResponse.SERVING:
                faults.append(f"{service} is not serving: {answer}")
        return faults

    async def decides(self) -> list[str]:
        """Admit and release a pod for which there is always room: what is wrong with that."""
        answer = await self.admission.Admit(
            ad.AdmitRequest(pod=pod("new", gpus=0, memory="1Mi"), owner="judge"),
            timeout=WAIT_SECONDS,
        )
        if answer.verdict != pb.VERDICT_ADMITTED:
            listing = await self.admission.ListAdmissions(
                ad.ListAdmissionsRequest(), timeout=WAIT_SECONDS
            )
            return [f"a small pod is not admitted: {answer.message}; there is {listing}"]
        await self.admission.Release(ad.ReleaseRequest(pod_uid="new"), timeout=WAIT_SECONDS)
        return []

    def forgive_losses(self, process: str) -> int:
        """How many pods a process was given something back for; it is no fault any more."""
        found = len(self._losses(process))
        self._forgiven[process] = self._forgiven.get(process, 0) + found
        return found

    def _losses(self, process: str) -> list[str]:
        lines = self._log(process).read_text().splitlines()
        told = [line for line in lines if line.startswith(LOST)]
        return told[self._forgiven.get(process, 0) :]

    def log_tail(self) -> str:
        """The last lines that the processes wrote."""
        return "\n".join(
            f"--- {process}\n{self._log(process).read_text()[-2000:]}"
            for process in self.processes
            if self._log(process).exists()
        )

    async def _dead(self, process: str) -> None:
        descriptor = self._running.pop(process)
        dead = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, dead.set)
        try:
            await asyncio.wait_for(dead.wait(), WAIT_SECONDS)
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    async def _until_answered(self, call: object, request: object) -> None:
        assert callable(call)
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                await call(request, timeout=WAIT_SECONDS, wait_for_ready=True)
            except aio.AioRpcError as error:
                if error.code() != StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.01)
            else:
                return

    def _plan(self, process: str) -> Path:
        return self.directory / f"{process}.plan"

    def _log(self, process: str) -> Path:
        return self.directory / f"{process}.log"


@asynccontextmanager
async def open_world(*, together: bool, seed: int) -> AsyncIterator[World]:
    """A running node in a directory short enough for Unix sockets."""
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        world = World(Path(directory), together=together, seed=seed)
        try:
            await world.start()
            try:
                await world.ready()
            except aio.AioRpcError as error:
                error.add_note(world.log_tail())
                raise
            yield world
        finally:
            await world.close()
