"""The node of a soak: processes that can be stopped, starved and killed from outside.

Separate from the node of crash tests, which dies at chosen places; here nothing is wrapped, and
the processes are touched only by signals, limits and a full disk.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from tests.integration.books import own_faults
from tests.integration.dra_world import Place
from tests.integration.node_document import document
from tests.integration.plugin_world import end
from tests.integration.world import World
from tests.soak.claim_caller import ClaimCaller
from tests.soak.node_agent import NodeAgent
from tests.soak.plugin import SoakPlugin, plugins_section
from tests.soak.soak_agent import SoakAgent
from tests.soak.wall_clock import wall_clock

from numalign.config.settings import Service
from numalign.model.cpu_set import CpuSet
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
DISK_MIB = 24
"""The file system of the state: 8 MiB for a full journal of decisions, 16 for the databases."""

OWNERS = ("kubelet", "batch")
AGENTS_EACH = 2
HEARING_SECONDS = 5.0
"""How late it may be known what providers tell between calls: they are watched anew meanwhile."""


class SoakWorld(World):
    """All services, agents of two owners that load them, and what runs beside them.

    That is a caller whose pods have claims, a device plugin, and a node agent.

    `disk` is the small file system that state is on; None where none could be mounted.
    `wall_clock` is that of the services; None where it cannot be made to jump.
    """

    dies_at_places = False

    def __init__(self, directory: Path, *, seed: int, disk: Path | None) -> None:
        super().__init__(directory, together=False, seed=seed)
        self.disk = disk
        self.wall_clock = wall_clock(directory)
        if self.wall_clock is not None:
            self.environment = {**os.environ, **self.wall_clock.environment}
        (directory / "config.yaml").write_text(yaml.safe_dump(_roomy(directory)))
        self.soakers = [
            SoakAgent(f"{owner}{number}", self.admission, random.Random(f"{seed}-{owner}{number}"))
            for owner in OWNERS
            for number in range(AGENTS_EACH)
        ]
        self.plugin = SoakPlugin(directory)
        self.claims = ClaimCaller(self.admission, Place(directory), random.Random(f"{seed}-claims"))
        self.node_agent = NodeAgent(directory, random.Random(f"{seed}-agent"))
        self.agents = [*self.soakers]
        self.missing: list[str] = []

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the processes."""
        return PROCESSES

    async def start(self) -> None:
        """Start everything."""
        await super().start()
        self.claims.begin()
        self.plugin.begin()
        self.node_agent.begin()

    async def close(self) -> None:
        """End everything that was started here."""
        await super().close()
        for process in self.claims.files.processes:
            end(process, signal.SIGKILL)
        self.plugin.close()
        self.node_agent.close()

    async def ready(self) -> None:
        """As of any node; and the plugin is back."""
        await super().ready()
        self.missing = await self.plugin.check(self._providers[PROVIDERS.index("device")])

    def pid(self, process: str) -> int:
        """The pid of a running process."""
        lines = Path(f"/proc/self/fdinfo/{self._running[process]}").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))

    def signal(self, process: str, number: signal.Signals) -> None:
        """Send a signal to a running process."""
        signal.pidfd_send_signal(self._running[process], number)

    def limit(self, process: str, kind: int, soft: int) -> int:
        """Set the soft limit of a kind, such as RLIMIT_NOFILE; the one before."""
        pid = self.pid(process)
        before, hard = resource.prlimit(pid, kind)
        resource.prlimit(pid, kind, (soft, hard))
        return before

    def open_files(self, process: str) -> int:
        """One more than the largest descriptor that a process has in use."""
        entries = Path(f"/proc/{self.pid(process)}/fd").iterdir()
        return 1 + max(int(entry.name) for entry in entries)

    def resident_bytes(self, process: str) -> int:
        """Memory that a process holds."""
        pages = Path(f"/proc/{self.pid(process)}/statm").read_text().split()[1]
        return int(pages) * PAGE_BYTES

    async def killed(self, process: str) -> None:
        """Kill a process and wait until it is dead."""
        self.kill(process)
        await self._dead(process)

    async def kill_and_restart(self, process: str, down_seconds: float) -> None:
        """Kill a process, leave it dead for a while, start it."""
        await self.killed(process)
        await asyncio.sleep(down_seconds)
        await self.restart(process)

    async def judge(self) -> list[str]:
        """As of any node; and what the providers tell between calls is heard."""
        await self.claims.settle()
        await self.node_agent.settle()
        async with self.node_agent.held():
            # Whatever it has asked for was decided before this is.
            await super().ready()
            faults = await super().judge() + await self._unheard()
            listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest(), timeout=5)
            faults += self.claims.check(listing) + self.node_agent.check(listing)
        return faults + self.missing

    async def _unheard(self) -> list[str]:
        """What those who watch are told of shared CPUs and is not so, after a moment."""
        cpu = self._providers[PROVIDERS.index("cpu")]
        until = time.monotonic() + HEARING_SECONDS
        while True:
            listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest(), timeout=5)
            books = await cpu.GetState(hp.GetStateRequest(), timeout=5)
            told, shared = listing.shared_cpus, books.cpu.default_cpus
            if CpuSet.parse(told) == CpuSet.parse(shared):
                return []
            if time.monotonic() > until:
                return [f"CPUs {shared} are shared, and those who watch are told {told}"]
            await asyncio.sleep(0.02)

    async def book_faults(self, number: int) -> list[str]:
        """What is wrong with the books of one provider now, whoever is calling."""
        provider = self._providers[number % len(self._providers)]
        return own_faults(await provider.GetState(hp.GetStateRequest(), timeout=5))


def machine(nodes: int, cores: int) -> dict[str, Any]:
    """A machine of equal NUMA nodes with that many cores each, of one thread."""
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 64 << 30,
                "distances": [10 if node == other else 20 for other in range(nodes)],
                "cores": [
                    {"id": core, "socket_id": node, "threads": [node * cores + core]}
                    for core in range(cores)
                ],
            }
            for node in range(nodes)
        ]
    }


def claims_section(directory: Path) -> dict[str, Any]:
    """The configuration of the DRA service."""
    return {"enabled": True, "pluginsRegistry": str(directory / "pr"), "retryAfter": "100ms"}


def _roomy(directory: Path) -> dict[str, Any]:
    """The configuration of a node that has room for most of what is asked, not for all."""
    found = document(
        directory,
        machine=machine(2, 14),
        devicePlugins=plugins_section(directory),
        dra=claims_section(directory),
    )
    del found["numalign"]["devices"]
    found["reservedSystemCPUs"] = "0"
    return found


PROCESSES = tuple(service.value for service in Service)
PROVIDERS = ("cpu", "memory", "device")


@asynccontextmanager
async def open_soak_world(seed: int) -> AsyncIterator[SoakWorld]:
    """A running node in a directory short enough for Unix sockets."""
    with TemporaryDirectory(prefix="na-") as directory:
        disk = Path(directory) / "state"
        disk.mkdir(mode=0o700)
        mounted = _mount(disk)
        world = SoakWorld(Path(directory), seed=seed, disk=disk if mounted else None)
        try:
            await world.start()
            await world.ready()
            yield world
        finally:
            await world.close()
            if mounted:
                _unmount(disk)


def _mount(disk: Path) -> bool:
    """Mount a file system hardly larger than the services need; false where that is not allowed."""
    if os.geteuid() != 0:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "tmpfs", str(disk)]
    return subprocess.run(command, check=False, capture_output=True, timeout=30).returncode == 0


def _unmount(disk: Path) -> None:
    subprocess.run(["umount", str(disk)], check=True, timeout=30)
