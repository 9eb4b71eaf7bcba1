"""The device provider's decisions in observer mode: what the kubelet decided, followed.

The rules on hints are those of the device engine; what differs is that the ids are there
before anybody is asked, and that nothing is chosen, told to plugins or injected. The
observation is a fact about the world, as an inventory is, and no part of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.device import freeing
from numalign.device.engine import DeviceEngine
from numalign.device.health import UnhealthyDevice
from numalign.device.hints import HintQuestion
from numalign.device.inventory import Inventory
from numalign.device.kubelet.observation import Observation, given, in_use, inventory_of
from numalign.device.kubelet.values import key_of
from numalign.device.ports import DevicePlugins
from numalign.device.requests import container_requests
from numalign.device.state import DeviceRecord, DeviceState, with_record
from numalign.device.strategies import DeviceStrategies
from numalign.errors import Deferred
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, HintList, TopologyHint
from numalign.model.ids import DeviceId, PodUid
from numalign.model.machine import Machine
from numalign.model.pod import Container, Pod
from numalign.model.resource_names import is_extended
from numalign.provider.engine import (
    NO_SOURCES,
    Allocated,
    Hinted,
    Preparation,
    Recorded,
    Restored,
    Sources,
    Started,
)

REASON = "KubeletDevicesNotKnown"
"""The reason of a deferral."""


class KubeletDeviceEngine(DeviceEngine):
    """Devices that a kubelet gives out. `observe` replaces what is known of them."""

    def __init__(
        self,
        machine: Machine,
        gates: FeatureGates,
        plugins: DevicePlugins,
        strategies: DeviceStrategies,
        retry_after: float,
    ) -> None:
        """Nothing is known yet. A pod that has to wait may ask again after `retry_after` s."""
        self._observation = Observation()
        self._in_use: Mapping[str, frozenset[DeviceId]] = {}
        self._retry_after = retry_after
        super().__init__(Inventory(), machine, gates, plugins, strategies)

    @property
    def observation(self) -> Observation:
        """What is known of the kubelet's devices."""
        return self._observation

    def observe(self, observation: Observation) -> None:
        """Decide over `observation` from now on."""
        self._observation = observation
        self._in_use = in_use(observation)
        self.update_inventory(inventory_of(observation))

    def asks(self, pod: Pod) -> bool:
        """Whether the pod has to do with the kubelet's devices, as far as one can tell.

        A resource that the kubelet has not told of may be one that came since it was asked.
        """
        return self.is_unheard_of(pod) or any(
            count and not container.is_regular_init
            for container in pod.all_containers()
            for count in self._requests(pod, container).values()
        )

    def is_unheard_of(self, pod: Pod) -> bool:
        """Whether the pod asks for an extended resource that the kubelet has not told of."""
        known = self._observation.resources() if self._observation.complete else frozenset()
        return any(
            count and not container.is_regular_init and resource not in known
            for container in pod.all_containers()
            for resource, count in self._asked_blindly(pod, container).items()
        )

    def is_awaited(self, pod: Pod) -> bool:
        """Whether some container asks for devices and is not known to have any."""
        return any(self._awaited(pod, container) for container in pod.all_containers())

    def start(self, stored: bytes | None) -> Started[DeviceState]:
        """Restore records, and the names of resources that were known (DEV-46)."""
        started = super().start(stored)
        known = self._observation.known.union(self.inventory.resources)
        self.observe(replace(self._observation, known=known))
        return replace(started, state=self.noted(started.state))

    def noted(self, state: DeviceState) -> DeviceState:
        """`state` with what is in use by the kubelet's word, and the names to store."""
        if self._observation.complete:
            state = replace(state, allocated=self._in_use)
        return super().noted(state)

    def restore(self, state: DeviceState, recorded: Recorded) -> Restored[DeviceState]:
        """Give a pod its recorded devices back; that they are in use is as it should be."""
        own = replace(state, allocated=freeing.allocated_by(state.records))
        restored = super().restore(own, recorded)
        return replace(restored, state=self.noted(restored.state))

    def release(self, state: DeviceState, pod_uid: PodUid) -> DeviceState:
        """Forget what the pod had; whether it is in use still is the kubelet's to say."""
        after = super().release(state, pod_uid)
        return after if after is state else self.noted(after)

    def remove_stale(self, state: DeviceState, sources: Sources) -> DeviceState:
        """Forget pods that are not active, as `release`."""
        after = super().remove_stale(state, sources)
        return after if after is state else self.noted(after)

    def unhealthy_devices(self, state: DeviceState) -> tuple[UnhealthyDevice, ...]:
        """Devices that recorded pods hold and that are not healthy, whoever else holds some."""
        own = replace(state, allocated=freeing.allocated_by(state.records))
        return super().unhealthy_devices(own)

    def topology_hints(
        self,
        state: DeviceState,
        pod: Pod,
        container: Container,
        sources: Sources,  # noqa: ARG002 - the kubelet alone says what is in use
    ) -> Hinted[DeviceState]:
        """Hints over the devices that the container has (DEV-23 step 2, DEV-24).

        Devices of init containers that end are not told of: such a container has no
        preference. Raises Deferred where the kubelet has not given what is asked for yet.
        """
        if container.is_regular_init:
            return Hinted(state, {})
        self._refuse_awaited_of(pod, (container,))
        held = given(self._observation, key_of(pod), container.name)
        return Hinted(
            state,
            {
                resource: self._held_hints(pod, container, resource, _ids(held, resource), asked)
                for resource, asked in self._requests(pod, container).items()
            },
        )

    def pod_topology_hints(
        self,
        state: DeviceState,
        pod: Pod,
        sources: Sources,  # noqa: ARG002 - as above
    ) -> Hinted[DeviceState]:
        """Hints over all devices that the pod has; impossible if a container has other than asked.

        Raises Deferred as `topology_hints`.
        """
        running = tuple(c for c in pod.all_containers() if not c.is_regular_init)
        self._refuse_awaited_of(pod, running)
        held: dict[str, set[DeviceId]] = {}
        asked: dict[str, int] = {}
        torn: set[str] = set()
        for container in running:
            has = given(self._observation, key_of(pod), container.name)
            for resource, count in self._requests(pod, container).items():
                ids = _ids(has, resource)
                held.setdefault(resource, set()).update(ids)
                asked[resource] = asked.get(resource, 0) + count
                if len(ids) != count:
                    torn.add(resource)
        return Hinted(
            state,
            {
                resource: ()
                if resource in torn
                else self._held_hints(pod, None, resource, frozenset(ids), asked[resource])
                for resource, ids in sorted(held.items())
            },
        )

    async def allocate(
        self,
        state: DeviceState,
        pod: Pod,
        container: Container,
        affinity: TopologyHint,  # noqa: ARG002 - the kubelet has chosen
        sources: Sources,
        *,
        dry_run: bool = False,  # noqa: ARG002 - the kubelet's plugins are not ours to tell
    ) -> Allocated[DeviceState]:
        """Record what the kubelet gave the container. Raises Deferred as `topology_hints`."""
        state = freeing.without_inactive(state, sources)
        if container.is_regular_init:
            return Allocated(state)
        self._refuse_awaited_of(pod, (container,))
        for resource, record in given(self._observation, key_of(pod), container.name).items():
            state = with_record(state, pod.uid, container.name, resource, record)
        return Allocated(self.noted(state))

    async def seal(self, state: DeviceState, pod: Pod) -> Allocated[DeviceState]:  # noqa: ARG002 - as below
        """Nothing: the plugins are the kubelet's to tell."""
        return Allocated(state)

    async def prepare_container(
        self,
        state: DeviceState,
        pod: Pod,  # noqa: ARG002 - see below
        container: Container,  # noqa: ARG002 - see below
        *,
        affinity: TopologyHint = NO_HINT,  # noqa: ARG002 - see below
        sources: Sources = NO_SOURCES,  # noqa: ARG002 - see below
    ) -> tuple[DeviceState, Preparation]:
        """Nothing to apply: the kubelet injects what its plugins want."""
        return state, Preparation()

    def _requests(self, pod: Pod, container: Container) -> dict[str, int]:
        """What the container asks of the kubelet's plugins; not what DRA claims back."""
        found = container_requests(self.inventory, DeviceState(), container)
        return {name: n for name, n in found.items() if not self._is_claimed(pod, container, name)}

    def _asked_blindly(self, pod: Pod, container: Container) -> dict[str, int]:
        """What the container asks of anybody's plugins, while it is not known whose there are."""
        return {
            resource: limit.value()
            for resource, limit in sorted(container.resources.limits.items())
            if is_extended(resource) and not self._is_claimed(pod, container, resource)
        }

    def _is_claimed(self, pod: Pod, container: Container, resource: str) -> bool:
        claimed = (container.name, resource) in pod.claimed_resources
        return self._gates.dra_extended_resource and claimed

    def _awaited(self, pod: Pod, container: Container) -> tuple[str, ...]:
        if container.is_regular_init:
            return ()
        if not self._observation.complete:
            return tuple(
                f'the kubelet has not told of its devices yet, and container "{container.name}" '
                f"asks for {resource}"
                for resource, count in self._asked_blindly(pod, container).items()
                if count
            )
        has = given(self._observation, key_of(pod), container.name)
        return tuple(
            f'the kubelet has given container "{container.name}" no {resource} yet'
            for resource, count in self._requests(pod, container).items()
            if count and resource not in has
        )

    def _refuse_awaited_of(self, pod: Pod, containers: tuple[Container, ...]) -> None:
        lines = [line for container in containers for line in self._awaited(pod, container)]
        if lines:
            raise Deferred(REASON, "; ".join(lines), self._retry_after)

    def _held_hints(
        self,
        pod: Pod,
        container: Container | None,
        resource: str,
        held: frozenset[DeviceId],
        asked: int,
    ) -> HintList:
        healthy = self.inventory.of(resource).healthy or frozenset()
        question = HintQuestion(
            request=asked,
            held=held,
            available=healthy - self._in_use.get(resource, frozenset()),
        )
        return self._hints(DeviceState(), pod, container, resource, question)


def _ids(held: Mapping[str, DeviceRecord], resource: str) -> frozenset[DeviceId]:
    record = held.get(resource)
    return frozenset() if record is None else record.ids()
