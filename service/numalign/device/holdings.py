"""What a pod has of devices, read from the books: for answers, records and problems.

Separate from the engine, which changes the books.
"""

from __future__ import annotations

from numalign.device.errors import DeviceFault
from numalign.device.hints import Fault
from numalign.device.inventory import Inventory
from numalign.device.requests import container_requests
from numalign.device.state import DeviceState
from numalign.model.ids import DeviceId, PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Lost
from numalign.provider.values import ContainerEdits, DeviceHolding, Holding


def holdings(state: DeviceState, pod_uid: PodUid) -> tuple[Holding, ...]:
    """Devices of each container, by ascending container name, then resource."""
    return tuple(
        Holding(
            container=container,
            devices=tuple(
                DeviceHolding(
                    resource=resource,
                    ids_by_node=record.ids_by_node,
                    edits=record.edits or ContainerEdits(),
                )
                for resource, record in sorted(resources.items())
            ),
        )
        for container, resources in sorted(state.records.get(pod_uid, {}).items())
    )


def differing(state: DeviceState, pod: Pod, inventory: Inventory) -> tuple[Lost, ...]:
    """Containers that hold another number of devices than they ask for.

    One that holds none is not named: it may get them when it starts (DEV-40).
    """
    return tuple(
        Lost(
            container=container.name,
            message=f"holds {len(record.ids())} {resource}, asks for {asked}",
            differs=True,
        )
        for container in pod.all_containers()
        for resource, asked in container_requests(inventory, state, container).items()
        if (record := state.record(pod.uid, container.name, resource)) is not None
        and len(record.ids()) != asked
    )


def answers(state: DeviceState, pod_uid: PodUid, container: str) -> dict[str, ContainerEdits]:
    """What the plugins answered for a container, by resource."""
    return {
        resource: record.edits
        for resource, record in state.container(pod_uid, container).items()
        if record.edits is not None
    }


def fault_of(
    state: DeviceState, pod_uid: PodUid, container: Container | None, resource: str
) -> Fault:
    """Makes the fault over a device of the pod that is not listed any more (DEV-25).

    It names the container that holds the device; the asking one first.
    """
    asking = container.name if container else ""

    def fault(device: DeviceId) -> DeviceFault:
        containers = state.records.get(pod_uid, {})
        holders = (
            name
            for name in (asking, *sorted(containers))
            if (record := containers.get(name, {}).get(resource)) is not None
            and device in record.ids()
        )
        return DeviceFault(
            pod_uid=pod_uid,
            container=next(holders, asking),
            resource=resource,
            device=device,
        )

    return fault
