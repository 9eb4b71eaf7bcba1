"""The CPU manager's state file: reading any of its versions, and writing it (CPU-24 to CPU-30).

What the file means is a `CpuCheckpoint`; how it is laid out is in `cpu_layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from numalign.kubelet_files.cpu_layout import (
    OLDER_TYPE_NAME,
    TYPE_NAME,
    VERSION_1,
    VERSION_2,
    VERSION_3,
    CpuDocument,
    OldestCpuDocument,
)
from numalign.kubelet_files.errors import (
    CorruptCheckpoint,
    UnusableCheckpoint,
)
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.go_json import Json, parse_json
from numalign.kubelet_files.go_shape import Faults
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign.model.ids import PodUid
from numalign.model.quoting import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCheckpoint:
    """What a CPU manager state file says.

    `hash_input` is the text whose checksum was found right; None where a file without a
    checksum was accepted, and in a value that was not read from a file.
    """

    policy_name: str
    default_cpus: CpuSet
    assignments: Mapping[PodUid, Mapping[str, CpuSet]] = field(default_factory=dict)
    pod_assignments: Mapping[PodUid, CpuSet] = field(default_factory=dict)
    hash_input: str | None = None


def read_cpu_checkpoint(
    text: str,
    configured_policy: str,
    pod_level_resource_managers: bool,
    initial_containers: Mapping[str, tuple[PodUid, str]],
) -> CpuCheckpoint:
    """Decode and verify the text of `cpu_manager_state` (CPU-26, CPU-27, CPU-29).

    `initial_containers` maps the runtime's container ids to pod UID and container name; only
    the oldest layout needs it. Raises CheckpointError with the kubelet's reason.
    """
    document, hash_input = _load(parse_json(text), pod_level_resource_managers, initial_containers)
    if document.policy_name != configured_policy:
        raise UnusableCheckpoint(
            f"configured policy {quoted(configured_policy)} differs from "
            f"state checkpoint policy {quoted(document.policy_name)}"
        )
    try:
        default_cpus = CpuSet.parse(document.default_cpu_set)
    except CpuSetSyntaxError as error:
        raise UnusableCheckpoint(
            f"could not parse default cpu set {quoted(document.default_cpu_set)}: {error}"
        ) from error
    return CpuCheckpoint(
        policy_name=document.policy_name,
        default_cpus=default_cpus,
        assignments={
            PodUid(pod): {
                name: _container_cpus(pod, name, cpus) for name, cpus in (of or {}).items()
            }
            for pod, of in (document.entries or {}).items()
        },
        pod_assignments={PodUid(p): cpus for p, cpus in (document.pod_entries or {}).items()},
        hash_input=hash_input,
    )


def cpu_hash_input(checkpoint: CpuCheckpoint, pod_level_resource_managers: bool) -> str:
    """The text that the checksum of `checkpoint` is computed over (CPU-25)."""
    return _printed(_document(checkpoint), pod_level_resource_managers)


def write_cpu_checkpoint(checkpoint: CpuCheckpoint, pod_level_resource_managers: bool) -> str:
    """The text of `cpu_manager_state`, byte for byte as the kubelet writes it (CPU-24)."""
    document = _document(checkpoint)
    layout = VERSION_3 if pod_level_resource_managers else VERSION_2
    checksum = fnv1a_32(_printed(document, pod_level_resource_managers))
    return layout.encode(replace(document, checksum=checksum))


def _load(
    root: Json,
    pod_level_resource_managers: bool,
    initial_containers: Mapping[str, tuple[PodUid, str]],
) -> tuple[CpuDocument, str | None]:
    """Try the versions from the newest to the oldest; the oldest one's error is reported.

    Pod entries that the failed attempt at version 3 did decode stay (CPU-27).
    """
    pod_entries: Mapping[str, CpuSet] | None = {}
    if pod_level_resource_managers:
        faults = Faults()
        document = VERSION_3.decode(root, CpuDocument(), faults)
        printed = _printed(document, pod_level_resource_managers=True)
        if faults.first is None and document.checksum == fnv1a_32(printed):
            return document, printed
        pod_entries = document.pod_entries
    faults = Faults()
    document = VERSION_2.decode(root, CpuDocument(), faults)
    printed = _printed(document, pod_level_resource_managers=False)
    accepted = [printed]
    if not pod_level_resource_managers:
        accepted.append(OLDER_TYPE_NAME + printed.removeprefix(TYPE_NAME))
    if faults.first is None and document.checksum in (0, *map(fnv1a_32, accepted)):
        verified = next((t for t in accepted if fnv1a_32(t) == document.checksum), None)
        return replace(document, pod_entries=pod_entries), verified
    oldest, verified = _load_oldest(root)
    return replace(_migrated(oldest, initial_containers), pod_entries=pod_entries), verified


def _load_oldest(root: Json) -> tuple[OldestCpuDocument, str | None]:
    faults = Faults()
    document = VERSION_1.decode(root, OldestCpuDocument(), faults)
    faults.check()
    printed = TYPE_NAME + VERSION_1.dump(replace(document, checksum=0))
    if document.checksum == 0:
        return document, None
    if document.checksum != fnv1a_32(printed):
        raise CorruptCheckpoint
    return document, printed


def _migrated(
    oldest: OldestCpuDocument, initial_containers: Mapping[str, tuple[PodUid, str]]
) -> CpuDocument:
    entries: dict[str, dict[str, str]] = {}
    for container_id, cpus in (oldest.entries or {}).items():
        known = initial_containers.get(container_id)
        if known is None:
            raise UnusableCheckpoint(
                "failed to migrate checkpoint from v1 to v2: "
                f"containerID '{container_id}' not found in initial containers list"
            )
        pod_uid, container = known
        entries.setdefault(pod_uid, {})[container] = cpus
    return CpuDocument(
        policy_name=oldest.policy_name, default_cpu_set=oldest.default_cpu_set, entries=entries
    )


def _container_cpus(pod: str, container: str, text: str) -> CpuSet:
    try:
        return CpuSet.parse(text)
    except CpuSetSyntaxError as error:
        raise UnusableCheckpoint(
            f"could not parse cpuset {quoted(text)} for container {quoted(container)} "
            f"in pod {quoted(pod)}: {error}"
        ) from error


def _document(checkpoint: CpuCheckpoint) -> CpuDocument:
    return CpuDocument(
        policy_name=checkpoint.policy_name,
        default_cpu_set=str(checkpoint.default_cpus),
        entries={
            pod: {name: str(cpus) for name, cpus in of.items()}
            for pod, of in checkpoint.assignments.items()
        },
        pod_entries={str(pod): cpus for pod, cpus in checkpoint.pod_assignments.items()},
    )


def _printed(document: CpuDocument, pod_level_resource_managers: bool) -> str:
    layout = VERSION_3 if pod_level_resource_managers else VERSION_2
    return TYPE_NAME + layout.dump(replace(document, checksum=0))
