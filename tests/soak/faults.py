"""What is done to the node while agents call it; each function does it and heals it again.

No fault lasts as long as an agent waits for an answer: whatever happens, a call comes back
before its deadline.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import signal
from collections.abc import Awaitable, Callable

from tests.integration.uptime import may_add_uptime
from tests.soak.soak_world import PROCESSES, PROVIDERS, SoakWorld

Fault = Callable[[SoakWorld, random.Random], Awaitable[None]]

LOWEST_FILE_BYTES = 4096
SPARE_DESCRIPTORS = 2
DAY = 86_400
JUMPS = (2.0, -2.0, 60.0, -60.0, 3600.0, -3600.0, 400.0 * DAY, -400.0 * DAY)
"""Seconds: less and more than every deadline and wait."""
UPTIMES = (100, DAY, 100 * DAY)
"""Seconds."""


async def provider_killed(world: SoakWorld, choose: random.Random) -> None:
    """A provider dies by SIGKILL and is started again."""
    await world.kill_and_restart(choose.choice(PROVIDERS), choose.uniform(0.0, 0.3))


async def service_killed(world: SoakWorld, choose: random.Random) -> None:
    """Admission or the Topology Manager dies by SIGKILL and is started again."""
    await world.kill_and_restart(choose.choice(("admission", "topology")), choose.uniform(0.0, 0.3))


async def two_killed(world: SoakWorld, choose: random.Random) -> None:
    """Two processes die one soon after the other."""
    pair = choose.sample(PROCESSES, 2)
    await asyncio.gather(
        *(world.kill_and_restart(process, choose.uniform(0.0, 0.2)) for process in pair)
    )


async def plugin_killed(world: SoakWorld, choose: random.Random) -> None:
    """The device plugin dies by SIGKILL and is started again."""
    world.plugin.kill()
    await asyncio.sleep(choose.uniform(0.0, 1.0))
    world.plugin.start()


async def agent_killed(world: SoakWorld, choose: random.Random) -> None:
    """The node agent dies by SIGKILL and is started again; its containers go on."""
    world.node_agent.kill()
    await asyncio.sleep(choose.uniform(0.0, 0.5))
    world.node_agent.start()


async def other_uptime(world: SoakWorld, choose: random.Random) -> None:
    """A process dies, and its next one finds the clocks that only go forward far ahead.

    The one after that finds them far behind again.
    """
    process = choose.choice(PROCESSES)
    for uptime in (choose.choice(UPTIMES), 0):
        await world.killed(process)
        await world.restart(process, uptime=uptime)
        await asyncio.sleep(choose.uniform(0.2, 0.6))


async def clock_jumps(world: SoakWorld, choose: random.Random) -> None:
    """The wall clock of the whole node is wrong at once, and later it is right at once."""
    assert world.wall_clock is not None
    world.wall_clock.jump(choose.choice(JUMPS))
    try:
        await asyncio.sleep(choose.uniform(0.2, 0.6))
    finally:
        world.wall_clock.jump(0)


async def paused(world: SoakWorld, choose: random.Random) -> None:
    """A process stands still, for less or more than a provider's time to answer."""
    process = choose.choice(PROCESSES)
    world.signal(process, signal.SIGSTOP)
    try:
        await asyncio.sleep(choose.choice((0.1, 0.5, 2.0, 3.0)))
    finally:
        world.signal(process, signal.SIGCONT)


async def slow(world: SoakWorld, choose: random.Random) -> None:
    """A process gets on with its work for a fraction of the time only."""
    process = choose.choice(PROCESSES)
    for _ in range(20):
        world.signal(process, signal.SIGSTOP)
        try:
            await asyncio.sleep(0.04)
        finally:
            world.signal(process, signal.SIGCONT)
        await asyncio.sleep(0.01)


async def disk_full(world: SoakWorld, choose: random.Random) -> None:
    """The file system of the state has no room, and a service is started anew meanwhile.

    Where no file system could be mounted, files of one process cannot grow.
    """
    if world.disk is None:
        await no_file_grows(world, choose)
        return
    filler = world.disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        os.fsync(file.fileno())
    try:
        await asyncio.sleep(choose.uniform(0.2, 0.6))
    finally:
        filler.unlink()


async def no_file_grows(world: SoakWorld, choose: random.Random) -> None:
    """Every write of one process beyond the first page of a file fails."""
    process = choose.choice(("topology", *PROVIDERS))
    before = world.limit(process, resource.RLIMIT_FSIZE, LOWEST_FILE_BYTES)
    try:
        await asyncio.sleep(choose.uniform(0.1, 0.5))
    finally:
        world.limit(process, resource.RLIMIT_FSIZE, before)


async def no_descriptors(world: SoakWorld, choose: random.Random) -> None:
    """A process may open hardly any file or connection more, and callers connect to it."""
    process = choose.choice(PROCESSES)
    most = world.open_files(process) + SPARE_DESCRIPTORS
    before = world.limit(process, resource.RLIMIT_NOFILE, most)
    path = world.directory / "run" / f"{process}.sock"
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(SPARE_DESCRIPTORS + 6):
            _, writer = await asyncio.open_unix_connection(path)
            writers.append(writer)
        await asyncio.sleep(choose.uniform(0.1, 0.5))
    finally:
        world.limit(process, resource.RLIMIT_NOFILE, before)
        for writer in writers:
            writer.close()


KILLS: dict[str, Fault] = {
    "provider killed": provider_killed,
    "service killed": service_killed,
    "two killed": two_killed,
    "other uptime": other_uptime,
}
OTHERS: dict[str, Fault] = {
    "plugin killed": plugin_killed,
    "agent killed": agent_killed,
    "paused": paused,
    "slow": slow,
    "disk full": disk_full,
    "no file grows": no_file_grows,
    "no descriptors": no_descriptors,
    "clock jumps": clock_jumps,
}


def left_out(world: SoakWorld) -> dict[str, str]:
    """The faults that cannot be had on this machine, and why."""
    found = {}
    if world.wall_clock is None:
        found["clock jumps"] = "there is no C compiler (cc)"
    if not may_add_uptime():
        found["other uptime"] = "the kernel refuses a time namespace"
    return found
