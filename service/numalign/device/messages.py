"""The device provider's books as messages."""

from __future__ import annotations

from numalign.device.engine import DeviceEngine
from numalign.device.inventory import HEALTHY, ResourceInventory
from numalign.device.metrics import resource_numbers
from numalign.device.state import DeviceState
from numalign.provider.messages import devices_to_message
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb


class DeviceBooks:
    """Translates the state of one engine; see `numalign.provider.servicer.Books`."""

    def __init__(self, engine: DeviceEngine) -> None:
        self._engine = engine

    def state_message(self, state: DeviceState) -> hp.GetStateResponse:
        """Every resource with its devices, and what every container holds."""
        inventory = self._engine.inventory
        return hp.GetStateResponse(
            device=hp.DeviceState(
                resources=[
                    _resource(
                        numbers.resource,
                        inventory.of(numbers.resource),
                        sorted(state.allocated.get(numbers.resource, ())),
                    )
                    for numbers in resource_numbers(inventory, state)
                ],
                assignments=[
                    hp.DeviceAssignment(
                        pod_uid=pod_uid,
                        container=holding.container,
                        devices=[devices_to_message(devices) for devices in holding.devices],
                    )
                    for pod_uid in sorted(self._engine.pods(state))
                    for holding in self._engine.holdings(state, pod_uid)
                ],
            )
        )

    def allocatable_message(
        self,
        state: DeviceState,  # noqa: ARG002 - healthy devices, given out or not (PR-12)
    ) -> hp.GetAllocatableResourcesResponse:
        """Healthy devices by resource; a device with several nodes is listed under each."""
        return hp.GetAllocatableResourcesResponse(
            devices=[
                _healthy(name, self._engine.inventory.of(name))
                for name in self._engine.inventory.served()
            ]
        )

    def unhealthy_message(self, state: DeviceState) -> pb.UnhealthyDevices:
        """Devices that pods hold and that are not healthy."""
        return pb.UnhealthyDevices(
            devices=[
                pb.UnhealthyDevice(
                    pod_uid=device.pod_uid,
                    container=device.container,
                    resource=device.resource,
                    id=device.id,
                    health=device.health,
                )
                for device in self._engine.unhealthy_devices(state)
            ]
        )


def _resource(name: str, resource: ResourceInventory, allocated: list[str]) -> hp.DeviceResource:
    endpoint = resource.endpoint
    healthy = resource.healthy or frozenset()
    unhealthy = resource.unhealthy or frozenset()
    return hp.DeviceResource(
        resource=name,
        devices=[
            hp.Device(
                id=device.id,
                healthy=device.health == HEALTHY,
                has_topology=device.numa_nodes is not None,
                numa_nodes=device.numa_nodes or (),
            )
            for _, device in sorted(resource.devices.items())
        ],
        allocated=allocated,
        connected=endpoint is not None and endpoint.stopped_at is None,
        capacity=len(healthy) + len(unhealthy),
        allocatable=len(healthy),
    )


def _healthy(name: str, resource: ResourceInventory) -> pb.DeviceAllocation:
    by_node: dict[int, list[str]] = {}
    ids = []
    for device_id in sorted(resource.healthy or ()):
        device = resource.devices.get(device_id)
        if device is None:
            continue
        ids.append(device_id)
        for node in (-1,) if device.numa_nodes is None else device.numa_nodes:
            by_node.setdefault(node, []).append(device_id)
    return pb.DeviceAllocation(
        resource=name,
        ids=ids,
        by_numa_node=[
            pb.NumaDevices(numa_node=node, ids=nodes) for node, nodes in sorted(by_node.items())
        ],
    )
