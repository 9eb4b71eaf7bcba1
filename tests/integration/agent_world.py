"""A node with an agent: services in one process, the agent in another, containers as processes.

Every container writes a line when it begins, so that one that was started twice is found.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.integration.books import faults_of
from tests.integration.node_document import document

from numalign.config.settings import Service
from numalign.errors import StateError
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign_agent.journal.journal import reading
from numalign_agent.journal.rows import Entry, PodRow, Problem
from numalign_agent.runners.process.directory import directories_in
from numalign_agent.runners.process.proc import open_process

NODE = "node-a"
WAIT_SECONDS = 90.0
AGENT, SERVICES = "agent", "all"
_PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)


class Zygote:
    """Forks agents and services (see `agent_zygote`); one for all worlds of a test module."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.agent_zygote"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fork(self, **request: str) -> int:
        """Start a process; its pid."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End it, and what it started."""
        self._process.communicate(timeout=WAIT_SECONDS)


class AgentWorld:
    """Use `agent_world`."""

    def __init__(
        self,
        zygote: Zygote,
        directory: Path,
        agent: Mapping[str, Any],
        services: Mapping[str, Any],
    ) -> None:
        self.directory = directory
        self._zygote = zygote
        self.manifests = directory / "manifests"
        self.state = directory / "agent"
        self._begun = directory / "begun"
        self.config = directory / "config.yaml"
        config = document(directory, **{"log": {"level": "info"}, **services}) | {
            "staticPodPath": str(self.manifests),
            "fileCheckFrequency": "1s",
        }
        config["numalign"]["agent"] = {
            "nodeName": NODE,
            "stateDirectory": str(self.state),
            "enforce": "none",
            "reconcileFrequency": "300ms",
            **agent,
        }
        self.config.write_text(yaml.safe_dump(config))
        self._running: dict[str, int] = {}
        run = directory / "run"
        self._channel = open_channel(run / "admission.sock")
        self._providers = [open_channel(run / f"{service}.sock") for service in _PROVIDERS]

    def start(self, what: str, dies_at: tuple[str, int] | None = None) -> None:
        """Start the agent or the services; they die where they are told to."""
        plan = self.directory / f"{what}.plan"
        plan.unlink(missing_ok=True)
        if dies_at is not None:
            place, count = dies_at
            # The services' plan has a token besides, for plans that are exchanged.
            plan.write_text(f"{place} {count}" + (" 1" if what == SERVICES else ""))
        log = self.directory / f"{what}.log"
        pid = self._zygote.fork(what=what, config=str(self.config), plan=str(plan), log=str(log))
        self._running[what] = os.pidfd_open(pid)

    def let_die(self, what: str, at: tuple[str, int]) -> None:
        """Let the services that run die when they come to a place for the so manieth time."""
        place, count = at
        (self.directory / f"{what}.plan").write_text(f"{place} {count} later")

    def start_all(self) -> None:
        """Start both."""
        self.start(SERVICES)
        self.start(AGENT)

    def kill(self, what: str) -> None:
        """Kill a process now, whatever it is doing."""
        signal.pidfd_send_signal(self._running[what], signal.SIGKILL)

    async def stop(self, what: str) -> None:
        """Ask a process to stop, and wait until it has."""
        signal.pidfd_send_signal(self._running[what], signal.SIGTERM)
        await self.dead(what)

    async def dead(self, what: str, seconds: float = WAIT_SECONDS) -> bool:
        """Wait until a process is dead; whether it is."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._running[what], ended.set)
        try:
            await asyncio.wait_for(ended.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._running[what])
        os.close(self._running.pop(what))
        return True

    async def close(self) -> None:
        """End everything, containers too."""
        for channel in (self._channel, *self._providers):
            await channel.close()
        for what in tuple(self._running):
            self.kill(what)
            await self.dead(what)
        for pid in self.processes().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if (self.state / "containers").is_dir():
            for container in directories_in(self.state / "containers"):
                while container.has_shim():  # noqa: ASYNC110 - its lock says it
                    await asyncio.sleep(0.01)

    def write(self, *pods: Mapping[str, Any]) -> None:
        """Put manifests into the directory, each whole or not at all."""
        self.manifests.mkdir(exist_ok=True)
        for pod in pods:
            name = pod["metadata"]["name"]
            draft = self.directory / f"{name}.draft"
            draft.write_text(json.dumps(pod))
            draft.rename(self.manifests / f"{name}.json")

    def write_at_once(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Let a whole directory of manifests appear."""
        drafts = self.directory / "drafts"
        drafts.mkdir()
        for pod in pods:
            (drafts / f"{pod['metadata']['name']}.json").write_text(json.dumps(pod))
        drafts.rename(self.manifests)

    def remove(self, *names: str) -> None:
        """Take manifests out of the directory."""
        for name in names:
            (self.manifests / f"{name}.json").unlink()

    def pod(self, name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """A manifest."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 5, "containers": list(containers), **spec},
        }

    def container(self, name: str, script: str = "exec sleep 1000", **fields: Any) -> Any:
        """A container that writes down that it began, and runs a script then."""
        # Written by one call, so that lines never mix.
        note = f'echo "$(POD)/{name}" >> {self._begun}'
        return {
            "name": name,
            "image": "none",
            "command": ["sh", "-c", f"{note}; {script}"],
            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            **fields,
        }

    def begun(self) -> Counter[str]:
        """How often each container (`<pod>/<container>`) began."""
        text = self._begun.read_text() if self._begun.exists() else ""
        return Counter(line.replace(f"-{NODE}/", "/") for line in text.splitlines())

    def rows(self) -> dict[str, PodRow]:
        """What the journal says of each pod, by the name of its manifest."""
        try:
            with reading(self.state) as journal:
                return {row.name.removesuffix(f"-{NODE}"): row for row in journal.pods()}
        except StateError:
            return {}

    def entries(self) -> list[Entry]:
        """What the agent wrote down."""
        with reading(self.state) as journal:
            return journal.entries(10_000)

    def problems(self) -> list[Problem]:
        """What sources cannot use."""
        with reading(self.state) as journal:
            return journal.problems()

    def phases(self) -> dict[str, str]:
        """`<verdict> <phase>` of each pod."""
        return {
            name: f"{row.verdict} {row.status.get('phase')}" for name, row in self.rows().items()
        }

    def processes(self) -> dict[str, int]:
        """The pid of every container that runs, by `<pod>/<container>`."""
        found: dict[str, int] = {}
        if not (self.state / "containers").is_dir():
            return found
        for directory in directories_in(self.state / "containers"):
            running, made = directory.running(), directory.made()
            if running is None or directory.exited() is not None:
                continue
            process = open_process(running.pid, running.start)
            if process is not None:
                os.close(process)
                name = f"{made.pod_name.removesuffix(f'-{NODE}')}/{made.container}"
                assert name not in found, f"{name} runs twice"
                found[name] = running.pid
        return found

    async def admitted(self) -> list[str]:
        """The names of the pods that Admission has, in order of admission."""
        listing = await self.listing()
        return [record.name.removesuffix(f"-{NODE}") for record in listing.admissions]

    async def settled(self, admitted: set[str]) -> None:
        """Wait until Admission holds these pods, and nobody else."""
        held: set[str] = set()
        for _ in range(1800):
            held = set(await self.admitted())
            if held == admitted:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"Admission holds {sorted(held)}, not {sorted(admitted)}")

    async def listing(self) -> ad.ListAdmissionsResponse:
        """Who is admitted."""
        stub = ad_grpc.AdmissionStub(self._channel)
        request = ad.ListAdmissionsRequest()
        return await stub.ListAdmissions(request, timeout=WAIT_SECONDS, wait_for_ready=True)

    async def faults(self) -> list[str]:
        """What is wrong with the books of the services."""
        stubs = [hp_grpc.HintProviderStub(channel) for channel in self._providers]
        request = hp.GetStateRequest()
        states = [
            await stub.GetState(request, timeout=WAIT_SECONDS, wait_for_ready=True)
            for stub in stubs
        ]
        return faults_of(await self.listing(), states)

    async def until(
        self, expected: object, seen: Callable[[], object], seconds: float = WAIT_SECONDS
    ) -> None:
        """Wait until `seen` returns what is expected."""
        last: object = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    last = seen()
                    if last == expected:
                        return
                    await asyncio.sleep(0.05)
        except TimeoutError:
            log = (self.directory / "agent.log").read_text()[-4000:]
            raise AssertionError(f"expected {expected}\nbut saw {last}\n{log}") from None


@asynccontextmanager
async def agent_world(
    zygote: Zygote, directory: Path, services: Mapping[str, Any] | None = None, **agent: Any
) -> AsyncIterator[AgentWorld]:
    """A world over a short directory of its own; nothing is started yet.

    `services` are keys of the `numalign` section, `agent` those of the agent's.
    """
    world = AgentWorld(zygote, directory, agent, services or {})
    try:
        yield world
    finally:
        await world.close()
