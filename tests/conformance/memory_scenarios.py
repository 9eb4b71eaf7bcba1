"""Replay of the memory part of recorded scenarios against the memory engine.

The Topology Manager's part (which calls are made, under which affinity) is taken from the
recording; everything the memory manager answered is compared: hints, allocation errors,
blocks, books, what a restart refuses.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tests.conformance.scenario_pods import (
    Json,
    gates_from_scenario,
    hint_from_scenario,
    hints_from_scenario,
    machine_from_scenario,
    pod_from_scenario,
    quantities,
)

from numalign.errors import StartError
from numalign.families.expand import expanded
from numalign.memory.engine import MemoryEngine, MemoryStrategies, build_engine
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import NumaId, PodUid
from numalign.model.pod import Container, Pod
from numalign.model.settings import MemorySettings, ReservedMemory
from numalign.provider.engine import Sources
from numalign.provider.values import MemoryBlock


def memory_settings_from_scenario(node: Json) -> MemorySettings:
    """The `memory_manager` part of a `node` section."""
    section: Json = node["memory_manager"]
    return MemorySettings(
        policy=section["policy"],
        reserved_memory=tuple(
            ReservedMemory(numa_node=NumaId(r["numa_node"]), limits=quantities(r["limits"]))
            for r in section.get("reserved_memory") or ()
        ),
        node_allocatable_reservation=quantities(section.get("node_allocatable_reservation")),
    )


@dataclass(slots=True)
class Tally:
    """What was compared, so that a replay that compares nothing is noticed."""

    steps: int = 0
    hints: int = 0
    allocations: int = 0
    books: int = 0
    blocks: int = 0
    start_errors: int = 0
    restarts: int = 0


@dataclass
class Replay:
    """One scenario in progress. `wrong` collects every difference found."""

    scenario: Json
    strategies: MemoryStrategies
    wrong: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.gates = gates_from_scenario(self.scenario)
        self.node: Json = dict(self.scenario["node"])
        self.active: dict[PodUid, Pod] = {}
        self.started: dict[PodUid, list[str]] = {}
        self.ready = True

    def run(self) -> None:
        """Replay all steps; stops at the first step that differs."""
        stage = self.scenario.get("construct_error_stage")
        try:
            self.engine = self._build()
        except StartError as error:
            self.check("construct error", str(error), self.scenario.get("construct_error"))
            self.check("construct stage", error.stage, stage)
            self.tally.start_errors += 1
            return
        if stage is not None:
            # Another part refuses; what the memory manager would have done is not recorded.
            self.check("construct", stage == "memory_manager", False)
            return
        self.state = self.engine.start(None).state
        self._compare_books("initial", self.scenario["initial_state"])
        for number, step in enumerate(self.scenario["steps"]):
            if self.wrong or not self._step(f"step {number} {step['op']}", step):
                return
            self.tally.steps += 1

    def check(self, what: str, ours: object, recorded: object) -> None:
        """Note a difference."""
        if ours != recorded:
            self.wrong.append(f"{self.scenario['name']}: {what}: {ours!r} != {recorded!r}")

    def _build(self) -> MemoryEngine:
        return build_engine(
            memory_settings_from_scenario(self.node),
            machine_from_scenario(self.node),
            self.gates,
            self.strategies,
        )

    def _step(self, where: str, step: Json) -> bool:
        """One step; False if the scenario ends with it."""
        op = step["op"]
        if op == "admit":
            pod = pod_from_scenario(step["pod"])
            self.active[pod.uid] = pod
            return self._admit(where, pod, step)
        if op == "start":
            self._start_containers(self.active[PodUid(step["pod_uid"])])
        elif op == "remove":
            self._remove(step)
        elif op == "restart":
            return self._restart(where, step)
        if "expect" in step:
            self._compare_books(where, step["expect"])
        return True

    def _start_containers(self, pod: Pod) -> None:
        for container in pod.all_containers():
            self.state = self.engine.add_container(self.state, pod, container)
            self.started.setdefault(pod.uid, []).append(container.name)

    def _remove(self, step: Json) -> None:
        uid = PodUid(step["pod_uid"])
        self.active.pop(uid, None)
        for name in self.started.pop(uid, ()):
            if step.get("call_remove_container"):
                self.state = self.engine.remove_container(self.state, uid, name)

    def _forget_containers(self, *, running: bool) -> None:
        """After a restart only containers that the runtime reports as running are known."""
        for uid, names in tuple(self.started.items()):
            pod = self.active.get(uid)
            if pod is None or not running:
                del self.started[uid]
                continue
            self.started[uid] = [n for n in names if not pod.container(n).is_regular_init]

    def _sources(self) -> Sources:
        if not self.ready:
            return Sources(ready=False)
        return Sources(
            active={
                uid: frozenset(c.name for c in pod.all_containers())
                for uid, pod in self.active.items()
            }
        )

    def _admit(self, where: str, pod: Pod, record: Json) -> bool:
        expect: Json = record["expect"]
        merges = {merge["container"]: merge for merge in record["hints"]}
        calls = [call for call in record["allocate_calls"] if call["provider"] == "memory"]
        # One container is hinted and allocated before the next is hinted.
        for name in (None, *(container.name for container in pod.all_containers())):
            if name in merges:
                self._compare_hints(where, pod, merges[name])
            for call in calls:
                if call["container"] == name:
                    self._allocate(where, pod, call, expect)
        if "panic" in expect:
            return False
        for name, recorded in expect["containers"].items():
            blocks = self.state.blocks(pod.uid, name) or ()
            self.check(f"{where} blocks of {name}", _plain(blocks), recorded["memory_blocks"])
            self.tally.blocks += len(blocks)
        pod_blocks = _plain(self.state.pods.get(pod.uid, ()))
        self.check(f"{where} pod blocks", pod_blocks, expect.get("pod_memory_blocks") or [])
        self._compare_books(where, expect)
        if not expect["admitted"]:
            self.active.pop(pod.uid, None)
        return True

    def _compare_hints(self, where: str, pod: Pod, merge: Json) -> None:
        name = merge["container"]
        recorded = next(p["hints"] for p in merge["providers"] if p["provider"] == "memory")
        if name is None:
            hinted = self.engine.pod_topology_hints(self.state, pod, self._sources())
        else:
            hinted = self.engine.topology_hints(
                self.state, pod, pod.container(name), self._sources()
            )
        self.state = hinted.state
        self.check(
            f"{where} hints of {name}", expanded(hinted.hints), hints_from_scenario(recorded)
        )
        self.tally.hints += 1

    def _allocate(self, where: str, pod: Pod, call: Json, expect: Json) -> None:
        container = None if call["container"] is None else pod.container(call["container"])
        first = pod.all_containers()[0] if container is None else container
        affinity = self._affinity(first, expect)
        if container is None:
            outcome = asyncio.run(
                self.engine.allocate_pod(self.state, pod, affinity, self._sources())
            )
        else:
            outcome = asyncio.run(
                self.engine.allocate(self.state, pod, container, affinity, self._sources())
            )
        self.state = outcome.state
        message = None if outcome.failure is None else outcome.failure.message
        self.check(f"{where} allocate {call['container']}", message, call["error"])
        self.tally.allocations += 1

    def _affinity(self, container: Container, expect: Json) -> TopologyHint:
        recorded = expect.get("containers", {}).get(container.name, {}).get("affinity")
        return NO_HINT if recorded is None else hint_from_scenario(recorded)

    def _restart(self, where: str, step: Json) -> bool:
        self.tally.restarts += 1
        self.node.update(step.get("node_override") or {})
        stored = self.engine.encode(self.state)
        self._forget_containers(running=step.get("containers_running", False))
        refused = step.get("start_error_stage")
        try:
            self.engine = self._build()
            self.state = self.engine.start(stored).state
        except StartError as error:
            self.check(f"{where} start error", str(error), step.get("start_error"))
            self.check(f"{where} start stage", error.stage, refused)
            self.tally.start_errors += 1
            return False
        if refused is not None:
            self.check(f"{where} memory started", refused.startswith("memory"), False)
            return False
        self.ready = False
        pods, self.active = self.active, {}
        for record in step.get("readmit", ()):
            uid = PodUid(record["pod_uid"])
            self.active[uid] = pods[uid]
            if not self._admit(f"{where} readmit {uid}", pods[uid], record):
                return False
        self.ready = True
        if "expect" in step:
            self._compare_books(where, step["expect"])
        return True

    def _compare_books(self, where: str, expect: Json) -> None:
        ours = {
            str(node): {
                "number_of_assignments": memory.assignments,
                "cells": list(memory.cells),
                "memory": {
                    resource: {
                        "total": table.total,
                        "systemReserved": table.system_reserved,
                        "allocatable": table.allocatable,
                        "reserved": table.reserved,
                        "free": table.free,
                    }
                    for resource, table in memory.tables.items()
                },
            }
            for node, memory in self.state.machine.items()
        }
        self.check(f"{where} books", ours, expect.get("machine_memory_state") or {})
        entries = {
            uid: {name: _plain(blocks) for name, blocks in containers.items()}
            for uid, containers in self.state.containers.items()
        }
        self.check(f"{where} assignments", entries, expect.get("memory_assignments") or {})
        self.tally.books += 1


def _plain(blocks: tuple[MemoryBlock, ...]) -> list[Json]:
    """Blocks as recordings write them, sorted by type (MEM-T20)."""
    return [
        {"type": block.resource, "numa_affinity": list(block.numa_nodes), "size": block.size}
        for block in sorted(blocks, key=lambda block: block.resource)
    ]


def replay(scenario: Json, strategies: MemoryStrategies) -> Replay:
    """Replay one scenario; look at `wrong` and `tally` of what comes back."""
    run = Replay(scenario, strategies)
    run.run()
    return run


__all__ = ["Replay", "Tally", "memory_settings_from_scenario", "replay"]
