"""Replays the CPU part of a recorded scenario against the engine, and lists what differs.

The merge and the other providers are not run: their recorded outcome is fed in. Hints and
allocations are asked for exactly where the recording has them, so a wrong decision shows at
the step where it is made.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tests.conformance.scenario_pods import (
    Json,
    cpu_settings_from_scenario,
    gates_from_scenario,
    hint_from_scenario,
    hints_from_scenario,
    machine_from_scenario,
    pod_from_scenario,
    topology_settings_from_scenario,
)

from numalign.cpu.engine import CpuEngine, build_engine
from numalign.cpu.state import CpuState
from numalign.cpu.strategies import KUBELET
from numalign.errors import StartError
from numalign.families.expand import expanded
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.provider.engine import Sources

STATE_FILE = "/var/lib/kubelet/cpu_manager_state"


def engine_for(scenario: Json, node: Json) -> CpuEngine:
    return build_engine(
        cpu_settings_from_scenario(node),
        topology_settings_from_scenario(node),
        machine_from_scenario(node),
        gates_from_scenario(scenario),
        KUBELET,
        state_file=STATE_FILE,
    )


def differences(scenario: Json) -> list[str]:
    """Everything that differs from the recording; empty if all agrees."""
    if scenario.get("construct_error_stage") == "topology_manager":
        # The Topology Manager refuses before a CPU provider is built.
        return []
    try:
        engine = engine_for(scenario, scenario["node"])
    except StartError as error:
        stage, message = scenario.get("construct_error_stage"), scenario.get("construct_error")
        if (error.stage, str(error)) == (stage, message):
            return []
        return [f"construction: {error.stage}: {error}, expected {stage}: {message}"]
    if scenario.get("construct_error_stage") == "cpu_manager":
        return [f"construction succeeded, expected {scenario['construct_error']}"]
    if "construct_error" in scenario:
        return []
    replay = Replay(scenario, engine, engine.start(None).state)
    return replay.run()


@dataclass
class Replay:
    """One scenario under way: what is active, what was started, what differed."""

    scenario: Json
    engine: CpuEngine
    state: CpuState
    node: Json = field(init=False)
    active: dict[PodUid, Pod] = field(default_factory=dict)
    started: set[tuple[PodUid, str]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node = self.scenario["node"]

    def run(self) -> list[str]:
        reserved = self.scenario.get("effective_reserved_cpus")
        if reserved is not None:
            self.compare("reserved", str(self.engine.reserved), reserved)
        self.compare_state("start", self.scenario["initial_state"])
        for number, step in enumerate(self.scenario["steps"]):
            if not self.step(f"step {number} {step['op']}", step):
                break
        return self.wrong

    def step(self, where: str, step: Json) -> bool:
        """Replay one step; False if the scenario ends here."""
        match step["op"]:
            case "admit":
                pod = pod_from_scenario(step["pod"])
                if not self.admit(where, pod, step, ready=True):
                    return False
            case "start":
                pod = self.active[PodUid(step["pod_uid"])]
                for container in pod.all_containers():
                    self.state = self.engine.add_container(self.state, pod, container)
                    self.started.add((pod.uid, container.name))
            case "remove":
                self.remove(step)
            case "restart":
                return self.restart(where, step)
        self.compare_state(where, step["expect"])
        return True

    def admit(self, where: str, pod: Pod, step: Json, *, ready: bool) -> bool:
        self.active[pod.uid] = pod
        calls = [call for call in step["allocate_calls"] if call["provider"] == "cpu"]
        if not step["hints"]:
            self.allocate(where, pod, calls, NO_HINT, ready=ready)
        for merge in step["hints"]:
            name = merge["container"]
            self.ask(f"{where} {name}", pod, merge, ready=ready)
            if merge["best"] is None:
                # The kubelet panics while it collects hints.
                return False
            mine = [call for call in calls if name is None or call["container"] == name]
            self.allocate(where, pod, mine, hint_from_scenario(merge["best"]), ready=ready)
        if "panic" in step["expect"]:
            return False
        if not step["expect"]["admitted"]:
            del self.active[pod.uid]
        self.compare_state(where, step["expect"])
        for name, expected in step["expect"]["containers"].items():
            cpus = self.state.assignment(pod.uid, name)
            self.compare(f"{where} {name}", str(cpus or ""), expected["cpus"])
        if "pod_cpus" in step["expect"]:
            held = self.engine.pod_holding(self.state, pod.uid).cpus
            self.compare(f"{where} pod", str(held), step["expect"]["pod_cpus"])
        return True

    def ask(self, where: str, pod: Pod, merge: Json, *, ready: bool) -> None:
        name, sources = merge["container"], self.sources(ready=ready)
        hinted = (
            self.engine.pod_topology_hints(self.state, pod, sources)
            if name is None
            else self.engine.topology_hints(self.state, pod, pod.container(name), sources)
        )
        self.state = hinted.state
        recorded = next(p for p in merge["providers"] if p["provider"] == "cpu")
        self.compare(
            f"{where} hints", expanded(hinted.hints), hints_from_scenario(recorded["hints"])
        )

    def allocate(
        self, where: str, pod: Pod, calls: list[Json], affinity: TopologyHint, *, ready: bool
    ) -> None:
        for call in calls:
            name, sources = call["container"], self.sources(ready=ready)
            outcome = asyncio.run(
                self.engine.allocate_pod(self.state, pod, affinity, sources)
                if name is None
                else self.engine.allocate(self.state, pod, pod.container(name), affinity, sources)
            )
            self.state = outcome.state
            error = outcome.failure.message if outcome.failure else None
            self.compare(f"{where} allocate {name}", error, call["error"])

    def remove(self, step: Json) -> None:
        uid = PodUid(step["pod_uid"])
        pod = self.active.pop(uid)
        for container in pod.all_containers():
            if (uid, container.name) in self.started and step.get("call_remove_container"):
                self.state = self.engine.remove_container(self.state, uid, container.name)
            self.started.discard((uid, container.name))

    def restart(self, where: str, step: Json) -> bool:
        self.node = {**self.node, **step.get("node_override", {})}
        stored = self.engine.encode(self.state)
        stage, message = step.get("start_error_stage"), step.get("start_error")
        try:
            self.engine = engine_for(self.scenario, self.node)
            self.state = self.engine.start(stored).state
        except StartError as error:
            self.compare(f"{where} start", (error.stage, str(error)), (stage, message))
            return False
        if stage is not None:
            self.compare(f"{where} start", stage.startswith("cpu_manager"), False)
            return False
        before, self.active = self.active, {}
        for entry in step.get("readmit", ()):
            uid = PodUid(entry["pod_uid"])
            if not self.admit(f"{where} {uid}", before[uid], entry, ready=False):
                return False
        self.compare_state(where, step["expect"])
        return True

    def sources(self, *, ready: bool) -> Sources:
        if not ready:
            return Sources(active=None, ready=False)
        return Sources(
            active={
                uid: frozenset(c.name for c in pod.all_containers())
                for uid, pod in self.active.items()
            }
        )

    def compare_state(self, where: str, expected: Json) -> None:
        self.compare(f"{where} default", str(self.state.default), expected["default_cpus"])
        assignments = {
            uid: {name: str(cpus) for name, cpus in containers.items()}
            for uid, containers in self.state.assignments.items()
        }
        self.compare(f"{where} assignments", assignments, expected["cpu_assignments"])

    def compare(self, where: str, actual: object, expected: object) -> None:
        if actual != expected:
            self.wrong.append(f"{where}: {actual!r}, expected {expected!r}")
