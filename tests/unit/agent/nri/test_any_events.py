"""Whatever the runtime tells in whatever order: exclusive CPUs are nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.agent.nri.made_up import (
    World,
    container_message,
)

from numalign.model.cpu_set import CpuSet
from numalign_agent.nri.wire.errors import CallFailed

STEPS = st.lists(
    st.tuples(st.sampled_from(["run", "create", "stop", "end"]), st.integers(0, 5)),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_exclusive_cpus_are_nobody_elses_whatever_happens(
    steps: list[tuple[str, int]], sizes: list[int]
) -> None:
    """A made-up kernel does what the runtime would be told, in its order; it is looked at after."""
    asyncio.run(play(steps, sizes))


async def play(steps: list[tuple[str, int]], sizes: list[int]) -> None:
    world = World()
    kernel: dict[str, CpuSet] = {}
    exclusive: set[str] = set()
    up: set[int] = set()

    def apply(updates: Any) -> None:
        for update in updates:
            if update.container_id in kernel:
                kernel[update.container_id] = CpuSet.parse(update.linux.resources.cpu.cpus)

    for step, number in steps:
        pod, name = f"p{number}", f"p{number}-app-0"
        if step == "run" and number not in up:
            try:
                await world.run(pod, sizes[number])
                up.add(number)
            except CallFailed:
                await world.end(pod)
        elif step == "create" and number in up and name not in kernel:
            response = await world.create(pod)
            apply(response.update)
            kernel[name] = CpuSet.parse(response.adjust.linux.resources.cpu.cpus)
            if sizes[number]:
                exclusive.add(name)
        elif step == "stop" and name in kernel:
            del kernel[name]
            exclusive.discard(name)
            apply((await world.events.stop_container(container_message(pod))).update)
        elif step == "end" and number in up:
            kernel.pop(name, None)
            exclusive.discard(name)
            up.discard(number)
            await world.end(pod)
        for own in exclusive:
            assert len(kernel[own]) == sizes[int(own[1])]
            for other, cpus in kernel.items():
                assert other == own or cpus.isdisjoint(kernel[own]), (step, own, other)
