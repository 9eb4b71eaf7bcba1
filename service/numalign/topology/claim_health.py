"""The health of claimed devices, told to those who watch the record (DRA-39).

Separate from the claims' preparation: here it is only said which containers hold the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numalign.topology.records import Records
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import types_pb2 as pb

TELLER = "claims"
"""Who tells the record of these devices, apart from the device provider."""

Unwell = dict[tuple[str, str, str, str, str], dr.ClaimedDeviceHealth]


class ClaimHealth:
    """Keeps what the DRA service said last, and tells the record what it means for containers."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._unwell: Unwell | None = None

    def heard(self, devices: Iterable[dr.ClaimedDeviceHealth]) -> None:
        """The devices that are not healthy are these now."""
        self._unwell = {
            (told.namespace, told.claim, told.driver, told.pool, told.device): told
            for told in devices
        }
        self.tell()

    def tell(self) -> None:
        """Containers may hold other claims now: tell the record anew."""
        if self._unwell is not None:
            devices = list(_unhealthy(self._records, self._unwell))
            self._records.note_health(pb.UnhealthyDevices(devices=devices), TELLER)


def _unhealthy(records: Records, unwell: Unwell) -> Iterator[pb.UnhealthyDevice]:
    for admitted in records.all():
        for allocation in admitted.message.allocations:
            for claim in allocation.claims:
                for reference in claim.references:
                    yield from _of_reference(
                        pb.UnhealthyDevice(
                            pod_uid=admitted.pod_uid,
                            container=allocation.container,
                            resource=f"claim:{reference}",
                        ),
                        claim,
                        reference,
                        unwell,
                    )


def _of_reference(
    about: pb.UnhealthyDevice, claim: cl.ClaimAllocation, reference: str, unwell: Unwell
) -> Iterator[pb.UnhealthyDevice]:
    """The devices that one reference of a container leads to, the first of each id (DRA-39)."""
    request = reference.partition("/")[2].split("/", 1)[0]
    told: set[str] = set()
    for device in claim.devices:
        requests = {name.split("/", 1)[0] for name in device.request_names}
        if request and requests and request not in requests:
            continue
        path = (claim.namespace, claim.name, device.driver, device.pool, device.device)
        shown = f"{device.driver}/{device.pool}/{device.device}"
        id_ = device.cdi_devices[0] if device.cdi_devices else shown
        if id_ not in told and path in unwell:
            yield pb.UnhealthyDevice(
                pod_uid=about.pod_uid,
                container=about.container,
                resource=about.resource,
                id=id_,
                health=unwell[path].health,
            )
        told.add(id_)
