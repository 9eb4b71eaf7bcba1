"""Claims between messages and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from numalign.dra.container_devices import ContainerDevices, UsedClaim
from numalign.dra.values import (
    ClaimDevice,
    ClaimInfo,
    ClaimKey,
    ClaimUid,
    Consumer,
    ContainerReferences,
    DriverPart,
    FetchedClaim,
    Phase,
    PodClaim,
    PodClaims,
    Reference,
)
from numalign.errors import FieldViolation, InvalidInput
from numalign.kube.pod_decode import parse_pod, pod_from_message
from numalign.model.ids import PodUid
from numalign.model.pod import Container
from numalign.model.quoting import quoted
from numalign.model.resource_names import is_extended
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import dynamic_resources_pb2 as dr

if TYPE_CHECKING:  # whoever only reads such messages need not load what drivers speak
    from numalign.dra.driver_connection import DriverConnection
    from numalign.dra.health_follower import Unwell

_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


def pod_claims(data: bytes, *, extended_resources: bool = True) -> PodClaims:
    """What a serialised v1.Pod says about claims; those of extended resources only if asked for.

    Raises InvalidInput for bytes that are no pod.
    """
    message = parse_pod(data)
    if not extended_resources:
        message.status.ClearField("extended_resource_claim_status")
    pod = pod_from_message(message)
    extended = message.status.extended_resource_claim_status
    requests = {container.name: container for container in pod.all_containers()}
    return PodClaims(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        entries=tuple(
            PodClaim(
                name=entry.name,
                claim_name=entry.resource_claim_name
                if entry.HasField("resource_claim_name")
                else None,
                template=entry.resource_claim_template_name
                if entry.HasField("resource_claim_template_name")
                else None,
            )
            for entry in message.spec.resource_claims
        ),
        statuses={
            status.name: status.resource_claim_name
            if status.HasField("resource_claim_name")
            else None
            for status in message.status.resource_claim_statuses
        },
        extended_claim=extended.resource_claim_name or None,
        containers=tuple(
            ContainerReferences(
                name=container.name,
                references=tuple(
                    Reference(claim.name, claim.request) for claim in container.resources.claims
                ),
                extended=tuple(
                    mapping.request_name
                    for mapping in extended.request_mappings
                    if mapping.container_name == container.name
                    and _is_claimed(requests[container.name], mapping.resource_name)
                ),
            )
            for container in (*message.spec.init_containers, *message.spec.containers)
        ),
    )


def fetched_claims(messages: Iterable[cl.FetchedClaim]) -> dict[str, FetchedClaim | str]:
    """What the API says of claims, by name. Raises InvalidInput naming the field."""
    fetched: dict[str, FetchedClaim | str] = {}
    for index, message in enumerate(messages):
        path = f"claims[{index}]"
        if not message.name:
            raise InvalidInput(FieldViolation(f"{path}.name", "Required value"))
        match message.WhichOneof("outcome"):
            case "claim":
                fetched[message.name] = _fetched(message, path)
            case "error":
                fetched[message.name] = message.error
            case _:
                raise InvalidInput(FieldViolation(path, "has neither a claim nor an error"))
    return fetched


def recorded_claims(messages: Iterable[dr.RecordedClaim]) -> tuple[ClaimInfo, ...]:
    """The claims that a record has, with the drivers that it names."""
    return tuple(
        ClaimInfo(
            key=ClaimKey(message.claim.namespace, message.claim.name),
            uid=ClaimUid(message.claim.uid),
            pods={PodUid(uid): 0 for uid in message.pod_uids},
            drivers=dict(_recorded_parts(message.claim)),
        )
        for message in messages
    )


def container_message(container: ContainerDevices) -> dr.ContainerClaims:
    """What one container gets."""
    return dr.ContainerClaims(
        container=container.name,
        claims=[_claim_message(used) for used in container.claims],
        cdi_devices=container.cdi_names,
    )


def kept_message(info: ClaimInfo) -> dr.KeptClaim:
    """A claim that is kept."""
    return dr.KeptClaim(
        namespace=info.key.namespace,
        name=info.key.name,
        uid=info.uid,
        pod_uids=sorted(info.pods),
        drivers=[
            dr.ClaimOfDriver(
                driver=driver,
                prepared=part.phase is Phase.PREPARED,
                devices=[_device_message(driver, device) for device in part.devices],
            )
            for driver, part in sorted(info.drivers.items())
        ],
    )


def driver_message(plugin: DriverConnection) -> dr.RegisteredDriver:
    """A plugin that is registered."""
    return dr.RegisteredDriver(
        name=plugin.driver,
        endpoint=str(plugin.endpoint),
        service=plugin.service.value,
        connected=plugin.connected,
    )


def unwell_message(unwell: Unwell) -> dr.ClaimedDeviceHealth:
    """A device that is not healthy."""
    return dr.ClaimedDeviceHealth(
        namespace=unwell.claim.namespace,
        claim=unwell.claim.name,
        driver=unwell.driver,
        pool=unwell.pool,
        device=unwell.device,
        health=unwell.health.value,
        message=unwell.message,
    )


def _fetched(message: cl.FetchedClaim, path: str) -> FetchedClaim:
    claim = message.claim
    for field in ("namespace", "name", "uid"):
        if not getattr(claim, field):
            raise InvalidInput(FieldViolation(f"{path}.claim.{field}", "Required value"))
    if claim.name != message.name:
        raise InvalidInput(
            FieldViolation(
                f"{path}.claim.name", f"is {quoted(claim.name)}, not {quoted(message.name)}"
            )
        )
    drivers = None
    if claim.HasField("allocation"):
        drivers = tuple(dict.fromkeys(device.driver for device in claim.allocation.devices))
    return FetchedClaim(
        key=ClaimKey(claim.namespace, claim.name),
        uid=ClaimUid(claim.uid),
        controller_uid=claim.controller_uid,
        reserved_for=tuple(
            Consumer(api_group=each.api_group, resource=each.resource, uid=each.uid)
            for each in claim.reserved_for
        ),
        drivers=drivers,
    )


def _is_claimed(container: Container, resource: str) -> bool:
    """Whether a container's request for a resource is one that a claim can back (DRA-25)."""
    quantity = container.resources.requests.get(resource)
    return (
        quantity is not None
        and quantity.sign() != 0
        and (is_extended(resource) or resource.startswith(_CLASS_PREFIX))
    )


def _recorded_parts(claim: cl.ClaimAllocation) -> Iterator[tuple[str, DriverPart]]:
    for driver in dict.fromkeys(device.driver for device in claim.devices):
        devices = tuple(
            ClaimDevice(
                pool=device.pool,
                device=device.device,
                share_id=device.share_id if device.HasField("share_id") else None,
                requests=tuple(device.request_names),
                cdi_names=tuple(device.cdi_devices),
            )
            for device in claim.devices
            if device.driver == driver
        )
        yield driver, DriverPart(devices=devices)


def _claim_message(used: UsedClaim) -> cl.ClaimAllocation:
    info = used.info
    return cl.ClaimAllocation(
        namespace=info.key.namespace,
        name=info.key.name,
        uid=info.uid,
        devices=[_device_message(driver, device) for driver, device in info.device_list()],
        references=used.shown,
    )


def _device_message(driver: str, device: ClaimDevice) -> cl.ClaimedDevice:
    return cl.ClaimedDevice(
        driver=driver,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        request_names=device.requests,
        cdi_devices=device.cdi_names,
    )
