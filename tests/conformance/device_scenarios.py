"""Replays the device part of the recorded scenarios against the device engine alone.

The other providers and the Topology Manager are the recording: which hints were asked for,
which affinity came out and whose allocation failed. Everything about devices is decided here
and compared after every step.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from tests.conformance.recorded_paths import differences
from tests.conformance.scenario_pods import (
    Json,
    gates_from_scenario,
    hint_from_scenario,
    machine_from_scenario,
    pod_from_scenario,
)

from numalign.device.engine import DeviceEngine, build_engine
from numalign.device.errors import DeviceFault
from numalign.device.inventory import Inventory, list_received, plugin_disconnected
from numalign.device.state import DeviceState
from numalign.device.static_plugins import StaticPlugins, registered, static_devices
from numalign.device.strategies import DeviceStrategies
from numalign.families.expand import expanded
from numalign.model.hint import NO_HINT, ProviderHints
from numalign.model.ids import DeviceId, PodUid
from numalign.model.numa_mask import nodes_of
from numalign.model.pod import Container, Pod
from numalign.model.settings import PreferredAllocation, StaticDevice, StaticResource
from numalign.provider.engine import Sources
from numalign.provider.values import PluginCall

KUBELET = DeviceStrategies(allocate_in_place=True, store_lazily=True)

ONE_ORDER_SEEN = {
    "random-devices-0139": (
        ".steps[14].plugin_calls",
        ".steps[14].expect.containers.c0.devices.example.com/fpga",
        ".steps[14].expect.device_allocated.example.com/fpga",
        ".steps[14].expect.pod_devices.pod-10",
        ".steps[15].expect.device_allocated.example.com/nic",
    )
}
"""Paths that the order between the resources of a container decides, missing from a recording.

A container asks for one fpga, which there is, and for three nics, which there are not. The
recorded runs all came to the nics first; coming to the fpga first leaves it allocated, and
its clean-up one step later drops the empty entry of the nics. The same recording lists the
same variation at its steps 2, 4 and 9.
"""


@dataclass(slots=True)
class Replayed:
    """What a replay found: steps gone through, comparisons made, differences."""

    steps: int = 0
    compared: int = 0
    found: list[str] = field(default_factory=list)


def static_resources(node: Json) -> dict[str, StaticResource]:
    """The `devices` part of a `node` section, by resource."""
    return {
        obj["resource"]: StaticResource(
            resource=obj["resource"],
            devices=devices_from(obj["devices"]),
            preferred_allocation=PreferredAllocation(obj["preferred_allocation"]),
            allocate_error=obj.get("allocate_error"),
        )
        for obj in node.get("devices", ())
    }


def devices_from(objs: list[Json]) -> tuple[StaticDevice, ...]:
    """Devices as a node or a `device_list` step writes them."""
    return tuple(
        StaticDevice(
            id=DeviceId(obj["id"]),
            numa_nodes=None if obj["numa_nodes"] is None else tuple(obj["numa_nodes"]),
            healthy=obj["healthy"],
        )
        for obj in objs
    )


def replay(scenario: Json) -> Replayed:
    """Replay one scenario to its end, its first device fault, or its start error."""
    return asyncio.run(_Replay(scenario).run())


class _Replay:
    def __init__(self, scenario: Json) -> None:
        self._scenario = scenario
        self._node: Json = scenario["node"]
        self._gates = gates_from_scenario(scenario)
        self._resources = static_resources(self._node)
        left_open: Json = scenario.get("nondeterministic_fields") or {}
        self._open_paths = (
            *(left_open.get("paths") or ()),
            *ONE_ORDER_SEEN.get(scenario["name"], ()),
        )
        self._ids_open = bool(left_open.get("device_ids"))
        self._pods: dict[PodUid, Pod] = {}
        self._started: set[PodUid] = set()
        self._connected: set[str] = set()
        self._ready = True
        self._running: frozenset[tuple[PodUid, str]] = frozenset()
        self._replayed = Replayed()
        self._engine, self._state = self._boot(None, registered_now=True)

    async def run(self) -> Replayed:
        if "initial_state" in self._scenario:
            self._compare(".initial_state", self._scenario["initial_state"], self._state_json())
        for index, step in enumerate(self._scenario.get("steps", ())):
            self._replayed.steps += 1
            if not await self._step(f".steps[{index}]", step):
                break
        return self._replayed

    def _boot(
        self, stored: bytes | None, *, registered_now: bool
    ) -> tuple[DeviceEngine, DeviceState]:
        engine = build_engine(
            Inventory(),
            machine_from_scenario(self._node),
            self._gates,
            StaticPlugins(self._resources.values()),
            KUBELET,
        )
        state = engine.start(stored).state
        return engine, self._register(engine, state) if registered_now else state

    def _register(self, engine: DeviceEngine, state: DeviceState) -> DeviceState:
        inventory = engine.inventory
        for resource in self._resources.values():
            inventory = registered(inventory, resource)
        self._connected = set(self._resources)
        engine.update_inventory(inventory)
        return engine.noted(state)

    async def _step(self, path: str, step: Json) -> bool:
        """Replay one step; whether the scenario goes on."""
        op = step["op"]
        if op == "admit":
            pod = pod_from_scenario(step["pod"])
            return await self._admit(path, step, pod)
        if op == "restart":
            return await self._restart(path, step)
        if op == "start":
            self._started.add(PodUid(step["pod_uid"]))
        elif op == "remove":
            self._pods.pop(PodUid(step["pod_uid"]), None)
            self._started.discard(PodUid(step["pod_uid"]))
        elif op in {"device_health", "device_list", "plugin_disconnect", "plugin_register"}:
            self._plugin_step(step)
        else:
            assert op == "stop_container", op
        self._compare_expect(path, step["expect"], None)
        return True

    def _plugin_step(self, step: Json) -> None:
        name = step["resource"]
        resource = self._resources[name]
        if step["op"] == "device_health":
            resource = replace(
                resource,
                devices=tuple(
                    replace(d, healthy=step["healthy"]) if d.id == step["id"] else d
                    for d in resource.devices
                ),
            )
        elif step["op"] == "device_list":
            resource = replace(resource, devices=devices_from(step["devices"]))
        self._resources[name] = resource
        inventory = self._engine.inventory
        if step["op"] == "plugin_disconnect":
            self._connected.discard(name)
            # A lost connection writes nothing.
            self._engine.update_inventory(plugin_disconnected(inventory, name, now=1.0))
            return
        if step["op"] == "plugin_register":
            self._connected.add(name)
            inventory = registered(inventory, resource)
        elif name not in self._connected:
            return
        else:
            inventory = list_received(inventory, name, static_devices(resource.devices))
        self._engine.update_inventory(inventory)
        self._state = self._engine.noted(self._state)

    async def _restart(self, path: str, step: Json) -> bool:
        if "start_error" in step:
            return False
        override: Json = step.get("node_override") or {}
        self._node = {**self._node, **override}
        if "devices" in override:
            self._resources = static_resources(self._node)
        plugins = step["plugins"]
        self._connected = set()
        stored = self._engine.encode(self._state)
        self._engine, self._state = self._boot(stored, registered_now=plugins == "early")
        self._ready = False
        self._running = frozenset(
            (uid, container.name)
            for uid in (self._started if step["containers_running"] else ())
            for container in self._pods[uid].all_containers()
            if not container.is_regular_init
        )
        pods, self._pods = self._pods, {}
        for index, entry in enumerate(step.get("readmit", ())):
            pod = pods[PodUid(entry["pod_uid"])]
            if not await self._admit(f"{path}.readmit[{index}]", entry, pod):
                return False
        self._started &= self._pods.keys()
        if plugins == "late":
            self._state = self._register(self._engine, self._state)
        self._ready = True
        self._compare_expect(path, step["expect"], None)
        return True

    async def _admit(self, path: str, entry: Json, pod: Pod) -> bool:
        self._pods[pod.uid] = pod
        if "panic" in entry["expect"]:
            self._expect_fault(path, entry, pod)
            return False
        calls: list[PluginCall] = []
        best = NO_HINT
        hints = {h["container"]: (i, h) for i, h in enumerate(entry["hints"])}
        allocations = {
            call["container"]: (i, call)
            for i, call in enumerate(entry["allocate_calls"])
            if call["provider"] == "device"
        }
        if None in hints:
            best = self._ask(path, hints[None], pod, None)
        if None in allocations:
            allocated = await self._engine.allocate_pod(self._state, pod, best, self._sources())
            self._state = allocated.state
            self._compare_allocation(path, allocations[None], None)
        for container in pod.all_containers():
            if container.name in hints:
                best = self._ask(path, hints[container.name], pod, container)
            if container.name in allocations:
                allocated = await self._engine.allocate(
                    self._state, pod, container, best, self._sources()
                )
                self._state = allocated.state
                calls.extend(allocated.plugin_calls)
                failure = None if allocated.failure is None else allocated.failure.message
                self._compare_allocation(path, allocations[container.name], failure)
        self._compare(
            f"{path}.plugin_calls", entry.get("plugin_calls") or [], [_call_json(c) for c in calls]
        )
        self._compare_expect(path, entry["expect"], pod.uid)
        if not entry["expect"]["admitted"]:
            del self._pods[pod.uid]
        return True

    def _expect_fault(self, path: str, entry: Json, pod: Pod) -> None:
        if "nil pointer" not in entry["expect"]["panic"]:
            return  # a fault of another provider
        scope = self._node["topology_manager"]["scope"]
        containers = [None] if scope == "pod" else list(pod.all_containers())
        self._replayed.compared += 1
        try:
            for container in containers:
                self._ask_engine(pod, container)
        except DeviceFault:
            return
        self._replayed.found.append(f"{path}: no fault")

    def _sources(self) -> Sources:
        active = {
            uid: frozenset(c.name for c in pod.all_containers()) for uid, pod in self._pods.items()
        }
        return Sources(active=active, ready=self._ready, running=self._running)

    def _ask_engine(self, pod: Pod, container: Container | None) -> ProviderHints:
        if container is None:
            hinted = self._engine.pod_topology_hints(self._state, pod, self._sources())
        else:
            hinted = self._engine.topology_hints(self._state, pod, container, self._sources())
        self._state = hinted.state
        return hinted.hints

    def _ask(
        self, path: str, asked: tuple[int, Json], pod: Pod, container: Container | None
    ) -> Any:
        index, recorded = asked
        actual = self._ask_engine(pod, container)
        provider = recorded["providers"][0]
        assert provider["provider"] == "device"
        self._compare(
            f"{path}.hints[{index}].providers[0].hints", provider["hints"], _hints_json(actual)
        )
        return hint_from_scenario(recorded["best"])

    def _compare_allocation(self, path: str, asked: tuple[int, Json], failure: str | None) -> None:
        index, recorded = asked
        self._compare(f"{path}.allocate_calls[{index}].error", recorded["error"], failure)

    def _compare_expect(self, path: str, expect: Json, pod_uid: PodUid | None) -> None:
        actual = self._state_json()
        recorded = {
            "device_allocated": expect["device_allocated"],
            "pod_devices": expect["pod_devices"],
        }
        if pod_uid is not None:
            pod_devices = actual["pod_devices"].get(pod_uid, {})
            recorded["containers"] = {
                name: {"devices": container["devices"]}
                for name, container in expect["containers"].items()
            }
            actual["containers"] = {
                name: {"devices": pod_devices.get(name, {})} for name in expect["containers"]
            }
        self._compare(f"{path}.expect", recorded, actual)

    def _state_json(self) -> Json:
        return {
            "device_allocated": {r: sorted(ids) for r, ids in self._state.allocated.items()},
            "pod_devices": {
                uid: {
                    container: {r: sorted(record.ids()) for r, record in resources.items()}
                    for container, resources in containers.items()
                }
                for uid, containers in self._state.records.items()
            },
        }

    def _compare(self, path: str, recorded: Any, actual: Any) -> None:
        self._replayed.compared += 1
        if path == ".initial_state":
            recorded = {key: recorded[key] for key in actual}
        self._replayed.found.extend(
            differences(recorded, actual, path, self._open_paths, self._kind_of)
        )

    def _kind_of(self, device: str) -> object:
        """What must agree of a device: its NUMA list if ids may be exchanged, else its id."""
        if self._ids_open:
            for name, resource in self._resources.items():
                for listed in resource.devices:
                    if listed.id == device:
                        return name, listed.numa_nodes
        return device


def _hints_json(hints: ProviderHints) -> Any:
    if hints is None:
        return None
    return {
        resource: None
        if listed is None
        else [
            {
                "nodes": None if hint.mask is None else list(nodes_of(hint.mask)),
                "preferred": hint.preferred,
            }
            for hint in listed
        ]
        for resource, listed in (expanded(hints) or {}).items()
    }


def _call_json(call: PluginCall) -> Json:
    """A plugin call as recorded: what is empty is left out."""
    written: Json = {"container": call.container, "resource": call.resource, "call": call.call}
    for key in ("devices", "available", "must_include", "response"):
        if getattr(call, key):
            written[key] = list(getattr(call, key))
    if call.call == "GetPreferredAllocation":
        written["size"] = call.size
    if call.error is not None:
        written["error"] = call.error
    return written
