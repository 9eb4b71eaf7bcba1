"""Small worlds for the device tests: pods, devices, an engine, and plugins that can be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from numalign.device.engine import DeviceEngine, build_engine
from numalign.device.health import known_at_present
from numalign.device.inventory import (
    Device,
    Inventory,
    PluginOptions,
    list_received,
    plugin_registered,
)
from numalign.device.ports import PluginError
from numalign.device.state import DeviceState
from numalign.device.static_plugins import preferred_ids
from numalign.device.strategies import DeviceStrategies
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import TopologyHint
from numalign.model.ids import DeviceId, PodUid
from numalign.model.machine import Machine, NumaNode
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import PreferredAllocation
from numalign.provider.engine import Sources
from numalign.provider.values import ContainerEdits

GPU = "example.com/gpu"
NIC = "example.com/nic"

KUBELET = DeviceStrategies(allocate_in_place=True, store_lazily=True)
SAFE = DeviceStrategies(
    allocate_in_place=False, ready_after_allocation=True, health_of=known_at_present
)

T = TypeVar("T")


def run(call: Coroutine[Any, Any, T]) -> T:
    """The result of an awaitable call."""
    return asyncio.run(call)


def ids(*names: str) -> tuple[DeviceId, ...]:
    """Device ids."""
    return tuple(DeviceId(name) for name in names)


def machine(*nodes: int) -> Machine:
    """A machine that has nothing but these NUMA nodes."""
    return Machine(numa_nodes=tuple(NumaNode(id=node) for node in nodes))


def device(id_: str, *nodes: int, health: str = "Healthy") -> Device:
    """A device with a topology of these nodes, possibly none."""
    return Device(id=DeviceId(id_), numa_nodes=nodes, health=health)


def bare(id_: str, health: str = "Healthy") -> Device:
    """A device without topology."""
    return Device(id=DeviceId(id_), numa_nodes=None, health=health)


def container(
    name: str = "app", *, init: bool = False, sidecar: bool = False, **limits: str | int
) -> Container:
    """A container with limits; the keywords `gpu` and `nic` stand for the resources."""
    return Container(
        name=name,
        resources=Resources(
            limits={f"example.com/{k}": Quantity.parse(str(v)) for k, v in limits.items()}
        ),
        is_init=init or sidecar,
        restartable=sidecar,
    )


def pod(*containers: Container, uid: str = "pod", **fields: Any) -> Pod:
    """A pod of these containers, init containers wherever they stand."""
    return Pod(
        uid=PodUid(uid),
        init_containers=tuple(c for c in containers if c.is_init),
        containers=tuple(c for c in containers if not c.is_init),
        **fields,
    )


def hint(*nodes: int, preferred: bool = True) -> TopologyHint:
    """A hint for these nodes."""
    return TopologyHint(mask_of(nodes), preferred)


def active(*pods: Pod) -> Sources:
    """Sources that know exactly these pods."""
    return Sources(active={p.uid: frozenset(c.name for c in p.all_containers()) for p in pods})


@dataclass
class Plugins:
    """Plugins that note what they were told, and fail or answer as a test sets them up."""

    preferred: PreferredAllocation = PreferredAllocation.LOWEST_ID
    edits: Mapping[str, ContainerEdits] = field(default_factory=dict)
    allocate_error: dict[str, PluginError] = field(default_factory=dict)
    pre_start_error: PluginError | None = None
    has_effects: bool = True
    told: list[tuple[Any, ...]] = field(default_factory=list)

    async def get_preferred_allocation(
        self,
        resource: str,
        available: tuple[DeviceId, ...],
        must_include: tuple[DeviceId, ...],
        size: int,
    ) -> tuple[DeviceId, ...]:
        self.told.append(("prefer", resource, available, must_include, size))
        return preferred_ids(self.preferred, available, must_include, size)

    async def allocate(self, resource: str, ids: tuple[DeviceId, ...]) -> ContainerEdits:
        self.told.append(("allocate", resource, ids))
        if resource in self.allocate_error:
            raise self.allocate_error[resource]
        return self.edits.get(resource, ContainerEdits())

    async def pre_start_container(self, resource: str, ids: tuple[DeviceId, ...]) -> None:
        self.told.append(("pre-start", resource, ids))
        if self.pre_start_error is not None:
            raise self.pre_start_error


def inventory(
    devices: Mapping[str, tuple[Device, ...]], options: PluginOptions | None = None
) -> Inventory:
    """The inventory of plugins that have registered and sent these lists."""
    made = Inventory()
    for resource, listed in devices.items():
        made = plugin_registered(
            made,
            resource,
            options or PluginOptions(get_preferred_allocation_available=True),
        )
        made = list_received(made, resource, listed)
    return made


def engine(
    *gpus: Device,
    nics: tuple[Device, ...] = (),
    nodes: tuple[int, ...] = (0, 1),
    plugins: Plugins | None = None,
    strategies: DeviceStrategies = KUBELET,
    gates: FeatureGates | None = None,
    options: PluginOptions | None = None,
) -> DeviceEngine:
    """An engine whose plugins have reported these devices."""
    reported = {GPU: gpus} if gpus else {}
    if nics:
        reported[NIC] = nics
    return build_engine(
        inventory(reported, options),
        machine(*nodes),
        gates or FeatureGates(),
        plugins or Plugins(),
        strategies,
    )


Change = Callable[[Inventory], Inventory]


def change(world: DeviceEngine, *changes: Change) -> None:
    """Apply inventory changes in turn."""
    made = world.inventory
    for each in changes:
        made = each(made)
    world.update_inventory(made)


def held(state: DeviceState, uid: str = "pod") -> dict[str, dict[str, str]]:
    """What a pod holds, ids joined into one word."""
    return {
        name: {r: "".join(sorted(record.ids())) for r, record in resources.items()}
        for name, resources in state.records.get(PodUid(uid), {}).items()
    }
