"""Rounds of load with a fault in each; after every round the whole node is judged.

The first rounds kill processes too. In the later ones every process lives on, so that growth of
its memory can be seen.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection

from grpc import aio
from tests.integration.agents import NO_DECISION
from tests.soak.faults import KILLS, OTHERS, left_out
from tests.soak.figures import Figures
from tests.soak.soak_world import PROCESSES, SoakWorld, open_soak_world

KILLING_SHARE = 0.5
"""The share of the admissions during which processes are killed too."""

WARM_SHARE = 0.6
"""The share of the admissions after which memory is measured the first time."""

ADMISSIONS_A_ROUND = 150
LOOK_EVERY_SECONDS = 0.1
ROUND_SECONDS = 60.0


async def soak(
    admissions: int,
    seed: int,
    *,
    per_round: int = ADMISSIONS_A_ROUND,
    seconds: float = 3600.0,
    only: Collection[str] = (*KILLS, *OTHERS),
    rounds: int = 1,
) -> Figures:
    """Load and break a node until so many admissions were answered, or for so long.

    `only` names the faults to choose from, at least one that kills and one that does not. Never
    fewer `rounds` than told, however many admissions the first of them let through. Ends early
    when something is wrong: what comes after it would tell nothing new.
    """
    figures = Figures(seed)
    choose = random.Random(f"{seed}-faults")
    started = time.monotonic()
    warm: dict[str, int] = {}
    async with open_soak_world(seed) as world:
        figures.left_out = left_out(world)
        while not figures.faults:
            done = _done(figures, admissions, started, seconds)
            if done >= 1 and figures.judged >= rounds and warm:
                break
            kills = done < KILLING_SHARE and figures.judged % 2 == 0
            name = _next(only, KILLS if kills else OTHERS, figures, choose)
            try:
                await _round(world, figures, name, choose, per_round)
            except Exception as error:
                error.add_note(f"{name}, after {figures.admitted}\n{world.log_tail()}")
                raise
            if done >= WARM_SHARE and not warm:
                warm = {process: world.resident_bytes(process) for process in PROCESSES}
        if not figures.faults:
            for agent in world.soakers:
                await agent.release_all()
            await world.claims.release_all()
            world.node_agent.remove_all()
            figures.faults += await world.judge() + await world.decides()
        else:
            figures.faults.append(f"after {name}\n{world.log_tail()}")
        figures.memory = {
            process: (warm[process], world.resident_bytes(process)) for process in warm
        }
    figures.seconds = time.monotonic() - started
    return figures


def _done(figures: Figures, admissions: int, started: float, seconds: float) -> float:
    return max(figures.admitted / admissions, (time.monotonic() - started) / seconds)


def _next(
    only: Collection[str], pool: Collection[str], figures: Figures, choose: random.Random
) -> str:
    """A fault of the pool, one that was injected least often."""
    possible = [name for name in pool if name in only and name not in figures.left_out]
    least = min(figures.injected[name] for name in possible)
    return choose.choice([name for name in possible if figures.injected[name] == least])


async def _round(
    world: SoakWorld, figures: Figures, name: str, choose: random.Random, per_round: int
) -> None:
    stop = asyncio.Event()
    callers = [asyncio.ensure_future(agent.run(stop)) for agent in world.soakers]
    callers.append(asyncio.ensure_future(world.claims.run(stop)))
    callers.append(asyncio.ensure_future(world.node_agent.run(stop)))
    looking = asyncio.ensure_future(_look(world, figures, stop))
    goal = _admitted(world) + per_round
    try:
        await asyncio.sleep(choose.uniform(0.0, 0.1))
        await {**OTHERS, **KILLS}[name](world, choose)
        figures.injected[name] += 1
        async with asyncio.timeout(ROUND_SECONDS):
            while _admitted(world) < goal:  # noqa: ASYNC110 - four agents count, no event says it
                await asyncio.sleep(0.02)
    finally:
        stop.set()
        await asyncio.gather(*callers, looking)
    await world.ready()
    figures.faults += await world.judge()
    figures.judged += 1
    agents = world.soakers
    figures.admitted = _admitted(world)
    figures.answered = sum(agent.answered for agent in agents)
    figures.given_up = sum(agent.given_up for agent in agents)
    figures.prepared = world.claims.prepared
    figures.reconciled = sum(agent.reconciled for agent in agents)
    figures.released_twice = sum(agent.released_twice for agent in agents)
    figures.unwritten = sum(agent.unwritten for agent in agents)
    figures.stuck = sum(agent.stuck for agent in agents)


async def _look(world: SoakWorld, figures: Figures, stop: asyncio.Event) -> None:
    """Look at the books of one provider after the other, while it works."""
    number = 0
    while not stop.is_set():
        number += 1
        try:
            figures.faults += await world.book_faults(number)
            figures.looked += 1
        except aio.AioRpcError as error:
            if error.code() not in NO_DECISION:
                raise
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def _admitted(world: SoakWorld) -> int:
    return sum(agent.admitted for agent in world.soakers)
