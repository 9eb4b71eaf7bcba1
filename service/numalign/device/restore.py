"""Giving a pod back the devices that the record says it has, where the books have lost them.

Separate from the stored form: there the provider's own file speaks, here the Topology Manager's
record stands in for it.
"""

from __future__ import annotations

from numalign.device.state import DeviceRecord, DeviceState, with_record, with_taken
from numalign.provider.engine import Lost, Recorded, Restored


def restore(state: DeviceState, recorded: Recorded) -> Restored[DeviceState]:
    """`state` with the recorded devices of one pod that nobody else holds.

    Devices are taken back by id, whether or not their plugin has come back yet: a container
    that runs keeps what it runs with (DEV-46). Containers of one pod may hold the same device,
    since init containers hand theirs on (DEV-26).
    """
    lost: list[Lost] = []
    pod_uid = recorded.pod_uid
    for holding in recorded.holdings:
        for devices in holding.devices:
            resource = devices.resource
            if not devices.ids or state.record(pod_uid, holding.container, resource) is not None:
                continue
            own = frozenset(
                device
                for resources in state.records.get(pod_uid, {}).values()
                if resource in resources
                for device in resources[resource].ids()
            )
            taken = (state.allocated.get(resource, frozenset()) - own).intersection(devices.ids)
            if taken:
                names = ", ".join(sorted(taken))
                message = f"{resource} {', '.join(devices.ids)}: {names} held by another pod"
                lost.append(Lost(container=holding.container, message=message))
                continue
            record = DeviceRecord(ids_by_node=devices.ids_by_node, edits=devices.edits)
            state = with_taken(state, resource, devices.ids)
            state = with_record(state, pod_uid, holding.container, resource, record)
    return Restored(state, tuple(lost))
