"""Whether the record of a pod and the books of a provider say the same, and how one follows.

The providers' books are what is true of the machine; the record is what was promised. Separate
from who asks and who writes, so that it is a function over messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

DEVICES = "device"
"""The built-in provider of devices. Those of third parties bear the name of their provider."""


def giver_of(device: pb.DeviceAllocation) -> str:
    """Name of the provider that gave devices."""
    return device.provider or DEVICES


def shown_by(provider: str, allocation: pb.ContainerAllocation) -> pb.ContainerAllocation:
    """The part of `allocation` that is in the books of the provider of that name."""
    part = pb.ContainerAllocation(container=allocation.container)
    if provider == "cpu":
        part.cpus = allocation.cpus
    elif provider == "memory":
        part.memory.extend(allocation.memory)
    else:
        part.devices.extend(d for d in allocation.devices if giver_of(d) == provider)
    return part


def whole_shown_by(provider: str, allocation: pb.PodAllocation) -> pb.PodAllocation:
    """The part of what a pod holds as a whole that is in that provider's books."""
    if provider == "cpu":
        return pb.PodAllocation(cpus=allocation.cpus)
    if provider == "memory":
        return pb.PodAllocation(memory=allocation.memory)
    return pb.PodAllocation()


def agrees(
    provider: str,
    record: pb.AdmissionRecord,
    holding: hp.PodHolding,
    finished: frozenset[str],
) -> bool:
    """Whether the provider holds for the pod just what is recorded.

    What init containers in `finished` gave back need not be held any more.
    """
    held = {each.container: each for each in holding.allocations}
    for recorded in record.allocations:
        part = shown_by(provider, recorded)
        now = held.pop(recorded.container, pb.ContainerAllocation())
        if part != _with_name(now, recorded.container) and not (
            _is_empty(now) and (recorded.container in finished or _is_empty(part))
        ):
            return False
    if any(not _is_empty(rest) for rest in held.values()):
        return False
    return whole_shown_by(provider, record.pod_allocation) == whole_shown_by(
        provider, holding.pod_allocation
    )


def followed(
    provider: str,
    record: pb.AdmissionRecord,
    holding: hp.PodHolding,
    lost: Iterable[hp.LostAllocation],
    finished: frozenset[str],
) -> pb.AdmissionRecord:
    """The record as the provider's books have it, with a problem for everything that was lost.

    `lost` are the provider's own words; where it has none, the change itself is named.
    """
    changed = pb.AdmissionRecord()
    changed.CopyFrom(record)
    reasons = {each.container: each.message for each in lost}
    held = {each.container: each for each in holding.allocations}
    for allocation in changed.allocations:
        now = _with_name(held.pop(allocation.container, None), allocation.container)
        before = shown_by(provider, allocation)
        if before == now:
            continue
        if not _is_empty(before) and allocation.container not in finished:
            reasons.setdefault(allocation.container, _change(before, now))
        _replace(provider, allocation, now)
    changed.allocations.extend(rest for rest in held.values() if not _is_empty(rest))
    before_whole = whole_shown_by(provider, record.pod_allocation)
    now_whole = whole_shown_by(provider, holding.pod_allocation)
    if before_whole != now_whole:
        if before_whole != pb.PodAllocation():
            reasons.setdefault("", "what the pod held as a whole is not held any more")
        _replace_whole(provider, changed, now_whole)
    for container, message in reasons.items():
        add_problem(changed, provider, container, message)
    return changed


def holding_now(
    provider: str,
    record: pb.AdmissionRecord,
    held: Iterable[pb.ContainerAllocation],
    containers: Collection[str],
) -> pb.AdmissionRecord:
    """The record with what the provider says that these containers hold, be it more or less.

    For what was asked for: nothing was lost, so there is no problem.
    """
    changed = pb.AdmissionRecord()
    changed.CopyFrom(record)
    told = {each.container: each for each in held}
    for allocation in changed.allocations:
        if allocation.container in containers:
            now = _with_name(told.get(allocation.container), allocation.container)
            _replace(provider, allocation, now)
    return changed


def add_problem(record: pb.AdmissionRecord, provider: str, container: str, message: str) -> None:
    """Note a problem, unless one of the same provider and container is noted: the first counts."""
    about = f"{provider}: container {container}: " if container else f"{provider}: "
    known = any(
        problem.startswith(about)
        and (container or not problem.startswith(f"{provider}: container "))
        for problem in record.problems
    )
    if not known:
        record.problems.append(about + message)


def _with_name(held: pb.ContainerAllocation | None, container: str) -> pb.ContainerAllocation:
    if held is not None and held.container:
        return held
    return pb.ContainerAllocation(container=container)


def _is_empty(allocation: pb.ContainerAllocation) -> bool:
    return not (allocation.cpus or allocation.memory or allocation.devices)


def _change(before: pb.ContainerAllocation, now: pb.ContainerAllocation) -> str:
    if _is_empty(now):
        return f"{_text(before)} not held any more"
    return f"{_text(before)} recorded, {_text(now)} held"


def _text(allocation: pb.ContainerAllocation) -> str:
    if allocation.cpus:
        return f'CPUs "{allocation.cpus}"'
    sizes = [f"{block.size} bytes of {block.resource}" for block in allocation.memory]
    devices = [f"{device.resource} {', '.join(device.ids)}" for device in allocation.devices]
    return ", ".join((*sizes, *devices))


def _replace(
    provider: str, allocation: pb.ContainerAllocation, now: pb.ContainerAllocation
) -> None:
    if provider == "cpu":
        allocation.cpus = now.cpus
    elif provider == "memory":
        del allocation.memory[:]
        allocation.memory.extend(now.memory)
    else:
        kept = [device for device in allocation.devices if giver_of(device) != provider]
        del allocation.devices[:]
        allocation.devices.extend(sorted((*kept, *now.devices), key=_builtin_first))


def _builtin_first(device: pb.DeviceAllocation) -> bool:
    return giver_of(device) != DEVICES


def _replace_whole(provider: str, record: pb.AdmissionRecord, now: pb.PodAllocation) -> None:
    if provider == "cpu":
        record.pod_allocation.cpus = now.cpus
    else:
        del record.pod_allocation.memory[:]
        record.pod_allocation.memory.extend(now.memory)
