"""Allocating devices for one container: choice, plugin, record, resource by resource.

Separate from the choice of ids, which asks nobody, and from the engine, which knows what
goes before and after. `seal` is the second half for plugins that are told last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from numalign.device.allocation import Choice, Demand, Supply, choose
from numalign.device.errors import DeviceFault
from numalign.device.freeing import rebuilt, without_inactive
from numalign.device.inventory import WITHOUT_TOPOLOGY, Inventory
from numalign.device.layout import DeviceLayout
from numalign.device.plugin_calls import PluginCaller
from numalign.device.ports import EmptyAllocation, PluginError
from numalign.device.requests import is_device_plugin_resource
from numalign.device.state import (
    DeviceRecord,
    DeviceState,
    with_record,
    with_taken,
)
from numalign.model.hint import TopologyHint
from numalign.model.ids import DeviceId, PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Sources


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state afterwards, the kubelet's text if it failed, and whether anything was taken."""

    state: DeviceState
    failure: str | None = None
    newly_allocated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAllocation:
    """One allocation for one container, over facts that do not change while it runs.

    `in_place`: plugins are told as soon as ids are chosen. `claims_count`: what a DRA claim
    backs is none of the plugins' business.
    """

    inventory: Inventory
    layout_of: Callable[[str], DeviceLayout]
    caller: PluginCaller
    in_place: bool
    claims_count: bool
    pod: Pod
    container: Container
    affinity: TopologyHint
    sources: Sources

    async def run(self, state: DeviceState) -> Outcome:
        """Allocate every device resource of the container, in ascending order (DEV-28).

        Stops at the first failure; what came before it stays recorded. Raises DeviceFault.
        """
        cleaned = False
        newly_allocated = False
        limits = self.container.resources.limits
        for resource in sorted(limits):
            if self._is_claimed(resource):
                continue
            if not is_device_plugin_resource(self.inventory, state, resource):
                continue
            if not cleaned:
                state = without_inactive(state, self.sources)
                cleaned = True
            outcome = await self._allocate(state, resource, limits[resource].value())
            state = outcome.state
            if outcome.failure is not None:
                return replace(outcome, newly_allocated=newly_allocated)
            newly_allocated = newly_allocated or outcome.newly_allocated
        return Outcome(state, newly_allocated=newly_allocated)

    async def _allocate(self, state: DeviceState, resource: str, required: int) -> Outcome:
        choice = await self._choose(state, resource, required)
        if choice.begun:
            state = with_taken(state, resource, choice.ids)
        if choice.failure is not None or not choice.ids:
            return Outcome(state, choice.failure)
        record = self._record(resource, choice.ids)
        if self.in_place:
            try:
                edits = await self.caller.allocate(self.container.name, resource, choice.ids)
            except EmptyAllocation as refused:
                return Outcome(state, str(refused))
            except PluginError as refused:
                return Outcome(rebuilt(state), str(refused))
            record = replace(record, edits=edits)
        state = with_record(state, self.pod.uid, self.container.name, resource, record)
        return Outcome(state, newly_allocated=True)

    async def _choose(self, state: DeviceState, resource: str, required: int) -> Choice:
        """Run the choice of ids, asking the plugin what the choice asks (DEV-29)."""
        choosing = choose(*self._question(state, resource, required))
        try:
            question = next(choosing)
            while True:
                try:
                    preferred = await self.caller.preference(
                        self.container.name, resource, question
                    )
                except PluginError as refused:
                    return Choice(ids=question.must_include, begun=True, failure=str(refused))
                question = choosing.send(preferred)
        except StopIteration as chosen:
            choice: Choice = chosen.value
            return choice

    def _question(self, state: DeviceState, resource: str, required: int) -> tuple[Demand, Supply]:
        pod_uid, name = self.pod.uid, self.container.name
        record = state.record(pod_uid, name, resource)
        demand = Demand(
            pod_uid=pod_uid,
            container=name,
            resource=resource,
            required=required,
            mask=self.affinity.mask,
        )
        supply = Supply(
            layout=self.layout_of(resource),
            healthy=self.inventory.of(resource).healthy,
            allocated=state.allocated.get(resource, frozenset()),
            reusable=state.reusable_by(pod_uid, resource),
            recorded=None if record is None else record.ids(),
            already_running=(not self.sources.ready and (pod_uid, name) in self.sources.running),
        )
        return demand, supply

    def _record(self, resource: str, ids: tuple[DeviceId, ...]) -> DeviceRecord:
        """Ids per NUMA node, a device with several nodes under each of them (DEV-39)."""
        listed = self.inventory.of(resource).devices
        by_node: dict[int, list[DeviceId]] = {}
        for device in ids:
            if device not in listed:
                raise DeviceFault(
                    pod_uid=self.pod.uid,
                    container=self.container.name,
                    resource=resource,
                    device=device,
                )
            for node in listed[device].numa_nodes or (WITHOUT_TOPOLOGY,):
                held = by_node.setdefault(node, [])
                if device not in held:
                    held.append(device)
        return DeviceRecord(ids_by_node={node: tuple(by_node[node]) for node in sorted(by_node)})

    def _is_claimed(self, resource: str) -> bool:
        return self.claims_count and (self.container.name, resource) in self.pod.claimed_resources


def is_unsealed(state: DeviceState, pod_uid: PodUid) -> bool:
    """Whether some plugin has not been told yet of a device that the pod holds."""
    return any(
        record.edits is None
        for resources in state.records.get(pod_uid, {}).values()
        for record in resources.values()
    )


async def seal(
    state: DeviceState, pod: Pod, containers: tuple[Container, ...], caller: PluginCaller
) -> Outcome:
    """Tell the plugins about every record they have not answered for yet.

    In the order of `containers`, then ascending resource. Stops at the first failure, with
    the text of DEV-38; what was answered before it stays answered.
    """
    newly_allocated = False
    for container in containers:
        for resource, record in sorted(state.container(pod.uid, container.name).items()):
            if record.edits is not None:
                continue
            try:
                edits = await caller.allocate(container.name, resource, tuple(sorted(record.ids())))
            except PluginError as refused:
                return Outcome(state, str(refused), newly_allocated)
            answered = replace(record, edits=edits)
            state = with_record(state, pod.uid, container.name, resource, answered)
            newly_allocated = True
    return Outcome(state, newly_allocated=newly_allocated)
