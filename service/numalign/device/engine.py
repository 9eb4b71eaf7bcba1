"""The device provider's decisions: the `Engine` of devices.

Puts the rules together: hints, choice of ids, what plugins are told, and what is recorded.
The rules themselves are in their own modules.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.device import facts, freeing, reuse, state_codec
from numalign.device.allocating import ContainerAllocation, Outcome, is_unsealed, seal
from numalign.device.awaiting import refuse_awaited
from numalign.device.catalogue import catalogue
from numalign.device.container_edits import preparation
from numalign.device.errors import ContainerNotPrepared
from numalign.device.health import UnhealthyDevice, unhealthy_devices
from numalign.device.hints import HintQuestion, hints
from numalign.device.holdings import answers, differing, fault_of, holdings
from numalign.device.inventory import Inventory, restored
from numalign.device.plugin_calls import PluginCaller
from numalign.device.ports import DevicePlugins, PluginError
from numalign.device.pre_start import lacks_devices, pre_start
from numalign.device.requests import container_requests, pod_requests
from numalign.device.restore import restore
from numalign.device.state import DeviceState, StoredDevices, with_written
from numalign.device.strategies import DeviceStrategies
from numalign.errors import Deferred
from numalign.model.cpu_set import CpuSet
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, HintList, TopologyHint
from numalign.model.ids import DeviceId, PodUid
from numalign.model.machine import Machine
from numalign.model.pod import Container, Pod
from numalign.provider.engine import (
    NO_SOURCES,
    Allocated,
    Hinted,
    Lost,
    Preparation,
    Recorded,
    Restored,
    Sources,
    Started,
)
from numalign.provider.values import (
    AllocationFailure,
    Holding,
    PodHolding,
    ResourceFacts,
)


class DeviceEngine:
    """Devices of device plugins. Holds the current inventory; everything else is in the state.

    Build it with `build_engine`.
    """

    name = "device"

    def __init__(
        self,
        inventory: Inventory,
        machine: Machine,
        gates: FeatureGates,
        plugins: DevicePlugins,
        strategies: DeviceStrategies,
    ) -> None:
        self._gates = gates
        self._entries = state_codec.entry_json()
        self._plugins = plugins
        self._strategies = strategies
        self._catalogue = catalogue(inventory, machine.node_ids())

    @property
    def inventory(self) -> Inventory:
        """What the plugins have reported so far."""
        return self._catalogue.inventory

    def update_inventory(self, inventory: Inventory) -> None:
        """Decide over `inventory` from now on."""
        self._catalogue = self._catalogue.over(inventory)

    def update_gates(self, gates: FeatureGates) -> None:
        """Decide under `gates` from now on."""
        self._gates = gates

    def noted(self, state: DeviceState) -> DeviceState:
        """`state` after a change of the inventory, with the names to store (DEV-16)."""
        if state.served != self._catalogue.served:
            state = replace(state, served=self._catalogue.served)
        return with_written(state) if self._strategies.store_lazily else state

    def resources(self) -> tuple[str, ...]:
        """Names of the resources that plugins serve now, ascending."""
        return self._catalogue.served

    def start(self, stored: bytes | None) -> Started[DeviceState]:
        """Restore records, and the resources whose plugins have not come back (DEV-46).

        Never refuses: what cannot be read is reported and left out.
        """
        decoded = state_codec.Decoded(StoredDevices())
        if stored is not None:
            decoded = state_codec.decode(stored)
        awaited = self._strategies.retry_after is not None
        self.update_inventory(restored(self.inventory, decoded.stored.served, awaited=awaited))
        records = decoded.stored.records
        state = DeviceState(
            records=records,
            allocated=freeing.allocated_by(records),
            served=self._catalogue.served,
            written=StoredDevices(records, self._catalogue.served),
        )
        return Started(state, decoded.reports)

    def restore(self, state: DeviceState, recorded: Recorded) -> Restored[DeviceState]:
        """Give a pod its recorded devices back, as far as nobody else holds them."""
        restored = restore(state, recorded)
        if restored.state is state:
            return restored
        return replace(restored, state=self.noted(restored.state))

    def missing(
        self,
        state: DeviceState,
        pod: Pod,
        finished: frozenset[str],  # noqa: ARG002 - devices are handed on, and records stay
    ) -> tuple[Lost, ...]:
        """Containers that hold another number of devices than they ask for.

        One that holds none is not named: it may get them when it starts (DEV-40).
        """
        return differing(state, pod, self.inventory)

    def encode(self, state: DeviceState) -> bytes:
        """The durable part of `state`, as JSON (DEV-44)."""
        if self._strategies.store_lazily:
            return state_codec.encode(state.written, self._entries)
        return state_codec.encode(StoredDevices(state.records, state.served), self._entries)

    def topology_hints(
        self, state: DeviceState, pod: Pod, container: Container, sources: Sources
    ) -> Hinted[DeviceState]:
        """Hints for one container, after dropping pods that are gone (DEV-21..25).

        Raises Deferred where a plugin is waited for, and DeviceFault where a held device is
        not listed any more.
        """
        self._refuse_awaited(pod, (container,))
        state = freeing.without_inactive(state, sources)
        answer: dict[str, HintList] = {}
        for resource, request in container_requests(self.inventory, state, container).items():
            record = state.record(pod.uid, container.name, resource)
            question = HintQuestion(
                request=request,
                held=frozenset() if record is None else record.ids(),
                available=self._available(state, resource),
                reusable=state.reusable_by(pod.uid, resource),
            )
            answer[resource] = self._hints(state, pod, container, resource, question)
        return Hinted(state, answer)

    def pod_topology_hints(
        self, state: DeviceState, pod: Pod, sources: Sources
    ) -> Hinted[DeviceState]:
        """Hints for the pod as a whole, as `topology_hints` (DEV-22, DEV-23)."""
        self._refuse_awaited(pod, pod.all_containers())
        state = freeing.without_inactive(state, sources)
        answer: dict[str, HintList] = {}
        for resource, request in pod_requests(self.inventory, state, pod).items():
            held = (
                resources[resource].ids()
                for resources in state.records.get(pod.uid, {}).values()
                if resource in resources
            )
            question = HintQuestion(
                request=request,
                held=frozenset().union(*held),
                available=self._available(state, resource),
            )
            answer[resource] = self._hints(state, pod, None, resource, question)
        return Hinted(state, answer)

    async def allocate(
        self,
        state: DeviceState,
        pod: Pod,
        container: Container,
        affinity: TopologyHint,
        sources: Sources,
        *,
        dry_run: bool = False,
    ) -> Allocated[DeviceState]:
        """Take the container's devices under `affinity` (DEV-26, DEV-28).

        A dry run tells no plugin, whatever the strategy.
        On failure the state keeps what was taken and recorded until then (DEV-30).
        Raises Deferred where a plugin is waited for, and DeviceFault where a reused device is
        not listed any more.
        """
        self._refuse_awaited(pod, (container,))
        caller = self._caller()
        allocation = ContainerAllocation(
            inventory=self.inventory,
            layout_of=self._catalogue.layout,
            caller=caller,
            in_place=self._strategies.allocate_in_place and not dry_run,
            claims_count=self._gates.dra_extended_resource,
            pod=pod,
            container=container,
            affinity=affinity,
            sources=sources,
        )
        outcome = await allocation.run(reuse.begun(state, pod.uid))
        state = outcome.state
        if outcome.failure is None:
            if outcome.newly_allocated:
                state = self.noted(state)
            state = reuse.after(state, pod.uid, container)
        allocated = _allocated(replace(outcome, state=state), caller)
        unsealed = self._plugins.has_effects and is_unsealed(state, pod.uid)
        return replace(allocated, unsealed=unsealed)

    async def allocate_pod(
        self,
        state: DeviceState,
        pod: Pod,  # noqa: ARG002 - a pod as a whole takes no devices
        affinity: TopologyHint,  # noqa: ARG002 - as above
        sources: Sources,  # noqa: ARG002 - as above
    ) -> Allocated[DeviceState]:
        """Nothing: devices of such a pod are taken as its containers start (DEV-27, DEV-T12)."""
        return Allocated(state)

    async def seal(self, state: DeviceState, pod: Pod) -> Allocated[DeviceState]:
        """Tell the plugins about everything the pod holds that they were not told in place."""
        caller = self._caller()
        outcome = await seal(state, pod, pod.all_containers(), caller)
        return _allocated(outcome, caller)

    def release(self, state: DeviceState, pod_uid: PodUid) -> DeviceState:
        """Give back everything the pod holds, and what failed allocations left taken."""
        return freeing.without_pod(state, pod_uid)

    def remove_container(
        self,
        state: DeviceState,
        pod_uid: PodUid,  # noqa: ARG002 - devices are given back pod by pod
        container: str,  # noqa: ARG002 - as above
    ) -> DeviceState:
        """Nothing: a container keeps its devices over restarts, until its pod ends (DEV-48)."""
        return state

    def add_container(
        self,
        state: DeviceState,
        pod: Pod,  # noqa: ARG002 - devices of init containers pass on in allocation
        container: Container,  # noqa: ARG002 - as above
    ) -> DeviceState:
        """Nothing: devices of init containers are handed on when they are allocated (DEV-26)."""
        return state

    def remove_stale(self, state: DeviceState, sources: Sources) -> DeviceState:
        """Drop the records of pods that are not active (DEV-21)."""
        return freeing.without_inactive(state, sources)

    def unhealthy_devices(self, state: DeviceState) -> tuple[UnhealthyDevice, ...]:
        """Devices that pods hold and that are not healthy (DEV-15, DEV-50)."""
        health_of = self._strategies.health_of
        return tuple(unhealthy_devices(self.inventory, state, health_of))

    def pods(self, state: DeviceState) -> frozenset[PodUid]:
        """The pods that have a record."""
        return frozenset(state.records)

    def shared_cpus(self, state: DeviceState) -> CpuSet | None:  # noqa: ARG002 - not about CPUs
        """None: devices know nothing of CPUs."""
        return None

    def holdings(self, state: DeviceState, pod_uid: PodUid) -> tuple[Holding, ...]:
        """Devices of each container, by ascending container name, then resource."""
        return holdings(state, pod_uid)

    def pod_holding(self, state: DeviceState, pod_uid: PodUid) -> PodHolding:  # noqa: ARG002 - see below
        """Empty: devices belong to containers."""
        return PodHolding()

    async def pre_start(self, state: DeviceState, pod: Pod, container: Container) -> None:
        """Have the plugins that want it make the container's devices ready (DEV-41).

        Comes before `prepare_container`, may take long, and changes nothing here. A container
        that gets devices only there has nothing to be made ready yet, which is an error where
        the strategy is the kubelet's. Raises ContainerNotPrepared with the kubelet's text.
        """
        late = self._strategies.ready_after_allocation
        if late and lacks_devices(state, pod, container, self.inventory):
            return
        try:
            await pre_start(state, pod, container, self.inventory, self._caller())
        except PluginError as refused:
            raise ContainerNotPrepared(str(refused)) from refused

    async def prepare_container(
        self,
        state: DeviceState,
        pod: Pod,
        container: Container,
        *,
        affinity: TopologyHint = NO_HINT,
        sources: Sources = NO_SOURCES,
    ) -> tuple[DeviceState, Preparation]:
        """What the plugins want in the container that is about to start (DEV-40, DEV-42).

        An active pod's container that asks for devices and has none gets them now, under
        `affinity`. Raises ContainerNotPrepared with the kubelet's text, and DeviceFault.
        """
        before = state.container(pod.uid, container.name)
        if lacks_devices(state, pod, container, self.inventory):
            try:
                taken = await self.allocate(state, pod, container, affinity, sources)
            except Deferred as deferred:
                raise ContainerNotPrepared(str(deferred)) from deferred
            if taken.failure is not None:
                raise ContainerNotPrepared(taken.failure.message)
            state = taken.state
        outcome = await seal(state, pod, (container,), self._caller())
        if outcome.failure is not None:
            raise ContainerNotPrepared(outcome.failure)
        state = outcome.state
        late = state.container(pod.uid, container.name).keys() != before.keys()
        return state, preparation(
            answers(state, pod.uid, container.name),
            late=late,
            unready=late and self._strategies.ready_after_allocation,
        )

    def facts(
        self, state: DeviceState, pod: Pod, container: Container | None
    ) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints, one entry for each device resource asked for."""
        requests = (
            pod_requests(self.inventory, state, pod)
            if container is None
            else container_requests(self.inventory, state, container)
        )
        return tuple(
            facts.resource_facts(
                resource=resource,
                requested=requested,
                known=self.inventory.of(resource),
                layout=self._catalogue.layout(resource),
                state=state,
            )
            for resource, requested in requests.items()
        )

    def _refuse_awaited(self, pod: Pod, containers: tuple[Container, ...]) -> None:
        retry_after = self._strategies.retry_after
        if retry_after is not None:
            refuse_awaited(
                self.inventory,
                pod,
                containers,
                retry_after,
                claims_count=self._gates.dra_extended_resource,
            )

    def _caller(self) -> PluginCaller:
        return PluginCaller(self._plugins, self.inventory)

    def _available(self, state: DeviceState, resource: str) -> frozenset[DeviceId]:
        healthy = self.inventory.of(resource).healthy or frozenset()
        return healthy - state.allocated.get(resource, frozenset())

    def _hints(
        self,
        state: DeviceState,
        pod: Pod,
        container: Container | None,
        resource: str,
        question: HintQuestion,
    ) -> HintList:
        fault = fault_of(state, pod.uid, container, resource)
        return hints(self._catalogue.layout(resource), question, fault)


def build_engine(
    inventory: Inventory,
    machine: Machine,
    gates: FeatureGates,
    plugins: DevicePlugins,
    strategies: DeviceStrategies,
) -> DeviceEngine:
    """The device engine over what plugins have reported, on this machine."""
    return DeviceEngine(inventory, machine, gates, plugins, strategies)


def _allocated(outcome: Outcome, caller: PluginCaller) -> Allocated[DeviceState]:
    failure = None if outcome.failure is None else AllocationFailure(outcome.failure)
    return Allocated(outcome.state, failure, tuple(caller.calls))
