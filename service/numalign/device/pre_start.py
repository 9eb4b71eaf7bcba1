"""The last word to the plugins before a container starts (DEV-40, DEV-41).

Separate from allocating: it changes no state and runs at every start, restarts included.
"""

from __future__ import annotations

from numalign.device.inventory import Inventory
from numalign.device.plugin_calls import PluginCaller
from numalign.device.ports import PluginError
from numalign.device.requests import container_requests
from numalign.device.state import DeviceState
from numalign.model.pod import Container, Pod


async def pre_start(
    state: DeviceState,
    pod: Pod,
    container: Container,
    inventory: Inventory,
    caller: PluginCaller,
) -> None:
    """Call PreStartContainer where a plugin wants it.

    Raises PluginError with the kubelet's text, also where a plugin wants the call and there
    is no record to call it with (DEV-T12).
    """
    for resource, requested in container_requests(inventory, state, container).items():
        if requested == 0:
            continue
        record = state.record(pod.uid, container.name, resource)
        if caller.pre_start_required(resource):
            if record is None:
                raise PluginError(
                    f"no devices found allocated in local cache for pod {pod.uid}, "
                    f"container {container.name}, resource {resource}"
                )
            await caller.pre_start(resource, tuple(sorted(record.ids())))


def lacks_devices(state: DeviceState, pod: Pod, container: Container, inventory: Inventory) -> bool:
    """Whether the container asks for devices of a resource and has no record of it (DEV-40)."""
    return any(
        requested != 0 and state.record(pod.uid, container.name, resource) is None
        for resource, requested in container_requests(inventory, state, container).items()
    )
