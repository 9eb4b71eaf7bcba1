"""The agent, Admission, or both killed at any point: the node comes to the same end.

A handful of kills in every run; NUMALIGN_AGENT_KILLS=<number> walks as many more.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent_kill_points import PLACES
from tests.integration.agent_world import AGENT, SERVICES, AgentWorld, Zygote, agent_world
from tests.integration.crash_plans import PLACES as SERVICE_PLACES

pytestmark = pytest.mark.processes

KILLS_IN_A_WALK = 5
SEEDS = range(2 + int(os.environ.get("NUMALIGN_AGENT_KILLS", "0")) // (2 * KILLS_IN_A_WALK))


def exclusive(cpus: int) -> dict[str, Any]:
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    return {"requests": amounts, "limits": amounts}


def first_pods(on: AgentWorld) -> list[dict[str, Any]]:
    """Four pods that fill the node, one for which there is no room, and some that are small."""
    return [
        *(on.pod(f"big{n}", on.container("c", resources=exclusive(3))) for n in range(5)),
        on.pod("job", on.container("c", "exit 0"), restartPolicy="Never"),
        on.pod(
            "steps",
            on.container("main"),
            initContainers=[on.container("first", "true"), on.container("second", "true")],
        ),
        on.pod(
            "helped",
            on.container("main"),
            initContainers=[on.container("helper", restartPolicy="Always")],
        ),
    ]


FIRST = {
    **{f"big{n}": "admitted Running" for n in range(4)},
    "big4": "rejected Failed",
    "job": "admitted Succeeded",
    "steps": "admitted Running",
    "helped": "admitted Running",
}
ONCE = {
    **{f"big{n}/c": 1 for n in range(4)},
    "job/c": 1,
    "steps/first": 1,
    "steps/second": 1,
    "steps/main": 1,
    "helped/helper": 1,
    "helped/main": 1,
}
RUNNING = set(ONCE) - {"job/c", "steps/first", "steps/second"}
GONE = ("big1", "helped")
SECOND = {name: told for name, told in FIRST.items() if name not in GONE} | {
    "late": "admitted Running"
}


async def killed(on: AgentWorld, choose: random.Random) -> None:
    """Let somebody die at a place of the agent or of the services, or both at any time."""
    victim = choose.choice((AGENT, AGENT, SERVICES, "both"))
    if victim == "both":
        await asyncio.sleep(choose.random() * 0.3)
        for what in (AGENT, SERVICES):
            on.kill(what)
            await on.dead(what)
        on.start_all()
        return
    places = PLACES if victim == AGENT else SERVICE_PLACES[SERVICES]
    place = (choose.choice(places), choose.randrange(1, 5))
    on.kill(victim)
    await on.dead(victim)
    on.start(victim, dies_at=place)
    # Where a place is not reached any more, it dies all the same.
    if not await on.dead(victim, seconds=choose.random()):
        on.kill(victim)
        await on.dead(victim)
    on.start(victim)


@pytest.mark.parametrize("seed", SEEDS)
async def test_kills_at_any_point_lead_to_the_same_end(
    seed: int, zygote: Zygote, directory: Path
) -> None:
    choose = random.Random(seed)
    async with agent_world(zygote, directory) as on:
        on.write_at_once(first_pods(on))
        on.start_all()
        for _ in range(KILLS_IN_A_WALK):
            await killed(on, choose)
        await on.until(FIRST, on.phases)
        await on.until(RUNNING, lambda: set(on.processes()))

        await on.until(ONCE, on.begun)
        await on.settled({f"big{n}" for n in range(4)} | {"steps", "helped"})
        assert await on.faults() == []

        on.remove(*GONE)
        on.write(on.pod("late", on.container("c", resources=exclusive(3))))
        for _ in range(KILLS_IN_A_WALK):
            await killed(on, choose)
        await on.until(SECOND, on.phases)
        left = {name for name in RUNNING if name.split("/")[0] not in GONE}
        await on.until(left | {"late/c"}, lambda: set(on.processes()))
        await on.until({**ONCE, "late/c": 1}, on.begun)
        await on.settled({"late", "steps", "big0", "big2", "big3"})
        assert await on.faults() == []


def two_sockets(cores: int) -> dict[str, Any]:
    """Two sockets, each a NUMA node of so many cores with two threads."""
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 256 << 30,
                "distances": [10, 20] if node == 0 else [20, 10],
                "cores": [
                    {
                        "id": core,
                        "socket_id": node,
                        "threads": [node * cores + core, (2 + node) * cores + core],
                    }
                    for core in range(cores)
                ],
            }
            for node in range(2)
        ]
    }


PODS = 250


async def test_a_crowd_is_decided_in_order_once_each(zygote: Zygote, directory: Path) -> None:
    """250 pods at once, more than fit; the agent and Admission are killed in the middle of it."""
    services = {"machine": two_sockets(48)}
    async with agent_world(zygote, directory, services, runner="recorder") as on:
        names = [f"p{number:03}" for number in range(PODS)]
        on.write_at_once(on.pod(name, on.container("c", resources=exclusive(1))) for name in names)
        on.start(SERVICES)
        on.start(AGENT, dies_at=("decided.entered", 40))
        assert await on.dead(AGENT)
        on.let_die(SERVICES, at=("row.written", 2))
        on.start(AGENT, dies_at=("decided.entered", 100))
        assert await on.dead(SERVICES)
        on.start(SERVICES)
        assert await on.dead(AGENT)
        on.start(AGENT)

        room = 4 * 48 - 2  # all CPUs but the reserved ones
        expected = dict.fromkeys(names[:room], "admitted Running")
        expected |= dict.fromkeys(names[room:], "rejected Failed")
        await on.until(expected, on.phases)

        decided = [e.pod for e in on.entries() if e.kind == "decision"]
        assert decided == [f"default/{name}-node-a" for name in names]
        assert await on.admitted() == names[:room]
        assert await on.faults() == []
