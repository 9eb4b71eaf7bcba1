"""The stored form of the device state: JSON, read piece by piece.

Separate from the state so that the values know nothing of files. Reading never refuses
(DEV-46): what cannot be read is left out and reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from numalign.device.state import ContainerRecords, DeviceRecord, StoredDevices
from numalign.model.ids import PodUid
from numalign.provider.entry_json import EntryJson

PodRecords = Mapping[str, ContainerRecords]
"""Records of one pod, by container."""


@dataclass(frozen=True, slots=True)
class _Document:
    """The stored form with its records still unread, so that a bad one spoils no other."""

    records: dict[PodUid, dict[str, dict[str, msgspec.Raw]]] = field(default_factory=dict)
    served: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decoded:
    """What could be read, and a line for everything that could not."""

    stored: StoredDevices
    reports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Written:
    """The stored form with its records being JSON already."""

    records: msgspec.Raw
    served: tuple[str, ...]


def entry_json() -> EntryJson[PodRecords]:
    """What an engine remembers of the JSON of its records."""
    return EntryJson(msgspec.json.encode)


def encode(stored: StoredDevices, entries: EntryJson[PodRecords] | None = None) -> bytes:
    """`stored` as JSON."""
    records = (entries or entry_json()).of(stored.records)
    return msgspec.json.encode(_Written(records, stored.served))


def decode(payload: bytes) -> Decoded:
    """Read what `encode` gave. Never raises: damage is reported and left out (DEV-46)."""
    try:
        document = msgspec.json.decode(payload, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Decoded(StoredDevices(), (f"no stored devices restored: {error}",))
    reports: list[str] = []
    records: dict[PodUid, dict[str, dict[str, DeviceRecord]]] = {}
    for pod_uid, containers in document.records.items():
        for container, resources in containers.items():
            for resource, raw in resources.items():
                try:
                    record = msgspec.json.decode(raw, type=DeviceRecord)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    reports.append(
                        f'record of pod "{pod_uid}" container "{container}" resource '
                        f'"{resource}" dropped: {error}'
                    )
                    continue
                records.setdefault(pod_uid, {}).setdefault(container, {})[resource] = record
    return Decoded(StoredDevices(records, document.served), tuple(reports))
