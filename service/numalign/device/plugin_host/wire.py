"""Messages of the device plugin interface to and from the provider's own values.

Separate so that nothing else knows how the interface spells them.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.device.inventory import Device, PluginOptions
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits, DeviceNode, Mount


def devices_from_bytes(data: bytes) -> tuple[Device, ...]:
    """The devices of a serialised ListAndWatchResponse, in its order. Raises DecodeError."""
    return tuple(
        Device(
            id=DeviceId(device.ID),
            numa_nodes=(
                tuple(node.ID for node in device.topology.nodes)
                if device.HasField("topology")
                else None
            ),
            health=device.health,
        )
        for device in dp.ListAndWatchResponse.FromString(data).devices
    )


def options_from_message(message: dp.DevicePluginOptions) -> PluginOptions:
    """The optional calls that a plugin wants."""
    return PluginOptions(
        pre_start_required=message.pre_start_required,
        get_preferred_allocation_available=message.get_preferred_allocation_available,
    )


def preferred_request(
    available: Sequence[DeviceId], must_include: Sequence[DeviceId], size: int
) -> dp.PreferredAllocationRequest:
    """The question which devices one container should get."""
    return dp.PreferredAllocationRequest(
        container_requests=[
            dp.ContainerPreferredAllocationRequest(
                available_deviceIDs=available,
                must_include_deviceIDs=must_include,
                allocation_size=size,
            )
        ]
    )


def allocate_request(ids: Sequence[DeviceId]) -> dp.AllocateRequest:
    """One container gets these devices."""
    return dp.AllocateRequest(container_requests=[dp.ContainerAllocateRequest(devices_ids=ids)])


def edits_from_message(message: dp.ContainerAllocateResponse) -> ContainerEdits:
    """What one container needs to use its devices."""
    return ContainerEdits(
        envs=dict(message.envs),
        mounts=tuple(
            Mount(container_path=m.container_path, host_path=m.host_path, read_only=m.read_only)
            for m in message.mounts
        ),
        device_nodes=tuple(
            DeviceNode(
                container_path=d.container_path, host_path=d.host_path, permissions=d.permissions
            )
            for d in message.devices
        ),
        annotations=dict(message.annotations),
        cdi_devices=tuple(device.name for device in message.cdi_devices),
    )
