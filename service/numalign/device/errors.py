"""What the device provider raises on purpose, under the tree of `numalign.errors`.

Separate from the shared tree because only device decisions can end this way.
"""

from __future__ import annotations

from numalign.errors import Fault, NotPrepared
from numalign.model.ids import DeviceId, PodUid


class DeviceFault(Fault):
    """A device that a container holds is not listed by its plugin any more (DEV-25).

    The kubelet crashes here (DEV-T9). No decision can be made, because the NUMA nodes of the
    device are unknown; nothing is kept.
    """

    def __init__(self, *, pod_uid: PodUid, container: str, resource: str, device: DeviceId) -> None:
        super().__init__(
            f'pod "{pod_uid}" container "{container}" holds device "{device}" of resource '
            f'"{resource}", which its device plugin no longer lists'
        )
        self.pod_uid = pod_uid
        self.container = container
        self.resource = resource
        self.device = device


class ContainerNotPrepared(NotPrepared):
    """A container cannot be started; the message is the kubelet's (DEV-40, DEV-41)."""
