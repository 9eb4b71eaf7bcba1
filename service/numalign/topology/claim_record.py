"""What the record of an admitted pod says of its resource claims: functions over messages."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.kube.claims import refers_to_claims
from numalign.kube.pod_decode import parse_pod
from numalign.model.ids import PodUid
from numalign.topology.records import Admitted
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import types_pb2 as pb


def needs_preparation(admitted: Admitted) -> str | None:
    """Why a container of the pod cannot be prepared: its claims are not; None if they are."""
    if admitted.message.claims_prepared:
        return None
    pod = parse_pod(admitted.pod)
    if not refers_to_claims(pod):
        return None
    return (
        f'resource claims of pod "{admitted.message.namespace}/{admitted.message.name}" are not '
        "prepared: call PreparePod first"
    )


def with_claims(
    record: pb.AdmissionRecord, containers: Iterable[dr.ContainerClaims]
) -> pb.AdmissionRecord:
    """The record with what containers get of claims, and nothing of what they got before."""
    changed = pb.AdmissionRecord()
    changed.CopyFrom(record)
    changed.claims_prepared = True
    gets = {each.container: each for each in containers}
    for allocation in changed.allocations:
        del allocation.claims[:]
        del allocation.claim_cdi_devices[:]
        if allocation.container in gets:
            allocation.claims.extend(gets[allocation.container].claims)
            allocation.claim_cdi_devices.extend(gets[allocation.container].cdi_devices)
    return changed


def keep_claims(allocation: pb.ContainerAllocation, before: pb.ContainerAllocation) -> None:
    """What a container gets of claims stays as it is recorded in `before`."""
    del allocation.claims[:]
    del allocation.claim_cdi_devices[:]
    allocation.claims.extend(before.claims)
    allocation.claim_cdi_devices.extend(before.claim_cdi_devices)


def recorded_claims(
    every: Iterable[Admitted], only: Admitted | None = None
) -> tuple[dr.RecordedClaim, ...]:
    """The claims that are recorded, each with all of its pods; with `only`, those of that pod."""
    found: dict[tuple[str, str], cl.ClaimAllocation] = {}
    users: dict[tuple[str, str], list[PodUid]] = {}
    for admitted in every:
        for key, claim in _claims(admitted.message).items():
            found.setdefault(key, claim)
            users.setdefault(key, []).append(admitted.pod_uid)
    wanted = found if only is None else _claims(only.message)
    return tuple(
        dr.RecordedClaim(claim=found[key], pod_uids=users[key])
        for key in sorted(wanted)
        if key in found
    )


def _claims(record: pb.AdmissionRecord) -> dict[tuple[str, str], cl.ClaimAllocation]:
    return {
        (claim.namespace, claim.name): claim
        for allocation in record.allocations
        for claim in allocation.claims
    }
