"""A snapshot as a file: JSON with a version, messages in their JSON form.

What pods run, which may hold secrets, is left out. Reading refuses what another version wrote,
and names what to do.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from numalign.cli.snapshot.redaction import redacted_pod
from numalign.cli.snapshot.values import AdmittedPod, NodeSnapshot
from numalign.errors import ConfigError
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign.v1 import control_pb2 as ct
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources

KIND = "NumalignSnapshot"
VERSION = 1

M = TypeVar("M", bound=Message)


def document_of(snapshot: NodeSnapshot) -> dict[str, Any]:
    """The snapshot as plain data."""
    return {
        "kind": KIND,
        "version": VERSION,
        "taken": snapshot.taken,
        "node": snapshot.node,
        "revision": snapshot.revision,
        "configuration": dict(snapshot.configuration),
        "admissions": [
            {
                "record": _plain(admitted.record),
                "pod": base64.b64encode(redacted_pod(admitted.pod)).decode(),
            }
            for admitted in snapshot.admissions
        ],
        "sharedCpus": snapshot.shared_cpus,
        "resources": _plain(snapshot.resources),
        "providers": [_plain(provider) for provider in snapshot.providers],
        "services": {name: _plain(status) for name, status in snapshot.services.items()},
        "decisions": [_plain(decision) for decision in snapshot.decisions],
        "cpu": None if snapshot.cpu is None else _plain(snapshot.cpu),
        "memory": None if snapshot.memory is None else _plain(snapshot.memory),
        "device": None if snapshot.device is None else _plain(snapshot.device),
    }


def read_snapshot(path: Path) -> NodeSnapshot:
    """The snapshot in a file. Raises ConfigError naming the file and what is wrong with it."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is no snapshot: {error}") from error
    try:
        return snapshot_of(document)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def snapshot_of(document: object) -> NodeSnapshot:
    """The snapshot that plain data describe. Raises ConfigError."""
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise ConfigError("is no snapshot; `numalign snapshot` writes one")
    version = document.get("version")
    if version != VERSION:
        raise ConfigError(
            f"is a snapshot of version {version}, and this numalign reads version {VERSION}: "
            "take it again with this one, or read it with the one that wrote it"
        )
    found = _Reader(document)
    snapshot = NodeSnapshot(
        taken=found.text("taken"),
        node=found.text("node"),
        configuration=found.mapping("configuration"),
        revision=found.number("revision"),
        admissions=tuple(
            AdmittedPod(
                _message(entry.get("record"), pb.AdmissionRecord, f"admissions[{i}].record"),
                _bytes(entry.get("pod"), f"admissions[{i}].pod"),
            )
            for i, entry in enumerate(found.mappings("admissions"))
        ),
        shared_cpus=found.text("sharedCpus"),
        resources=_message(document.get("resources"), NodeResources, "resources"),
        providers=found.messages("providers", tm.HintProviderStatus),
        services={
            name: _message(status, ct.GetStatusResponse, f"services.{name}")
            for name, status in found.mapping("services").items()
        },
        decisions=found.messages("decisions", dc.DecisionRecord),
        cpu=found.optional("cpu", hp.CpuState),
        memory=found.optional("memory", hp.MemoryState),
        device=found.optional("device", hp.DeviceState),
    )
    _check_cpus(snapshot)
    return snapshot


def _cpu_lists(snapshot: NodeSnapshot) -> Iterator[tuple[str, str]]:
    """Every list of CPUs, and where it stands."""
    if (cpu := snapshot.cpu) is not None:
        yield "cpu.defaultCpus", cpu.default_cpus
        yield "cpu.reservedCpus", cpu.reserved_cpus
        yield from ((f"cpu.pods[{i}].cpus", pod.cpus) for i, pod in enumerate(cpu.pods))
        yield from ((f"cpu.assignments[{i}].cpus", a.cpus) for i, a in enumerate(cpu.assignments))
    for i, admitted in enumerate(snapshot.admissions):
        record, where = admitted.record, f"admissions[{i}].record"
        yield f"{where}.podAllocation.cpus", record.pod_allocation.cpus
        for j, allocation in enumerate(record.allocations):
            yield f"{where}.allocations[{j}].cpus", allocation.cpus


def _check_cpus(snapshot: NodeSnapshot) -> None:
    """Raises ConfigError for a list of CPUs that is none."""
    for where, text in _cpu_lists(snapshot):
        try:
            CpuSet.parse(text)
        except CpuSetSyntaxError as error:
            raise ConfigError(f'{where}: "{text}" is no list of CPUs: {error}') from error


class _Reader:
    """Fields of the document, each refused by name where it is not what it has to be."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def text(self, key: str) -> str:
        value = self._document.get(key)
        if not isinstance(value, str):
            raise ConfigError(f"{key}: must be text")
        return value

    def number(self, key: str) -> int:
        value = self._document.get(key)
        if not isinstance(value, int):
            raise ConfigError(f"{key}: must be a whole number")
        return value

    def mapping(self, key: str) -> Mapping[str, Any]:
        value = self._document.get(key)
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key}: must be a mapping")
        return value

    def mappings(self, key: str) -> list[Mapping[str, Any]]:
        values = self._list(key)
        if not all(isinstance(value, Mapping) for value in values):
            raise ConfigError(f"{key}: must be a list of mappings")
        return list(values)

    def messages(self, key: str, kind: type[M]) -> tuple[M, ...]:
        return tuple(
            _message(value, kind, f"{key}[{i}]") for i, value in enumerate(self._list(key))
        )

    def optional(self, key: str, kind: type[M]) -> M | None:
        value = self._document.get(key)
        return None if value is None else _message(value, kind, key)

    def _list(self, key: str) -> Sequence[Any]:
        value = self._document.get(key)
        if not isinstance(value, list):
            raise ConfigError(f"{key}: must be a list")
        return value


def _plain(message: Message) -> dict[str, Any]:
    document: dict[str, Any] = MessageToDict(message)
    return document


def _message(value: object, kind: type[M], where: str) -> M:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: must be a mapping")
    try:
        return ParseDict(dict(value), kind())
    except ParseError as error:
        raise ConfigError(f"{where}: {error}") from error


def _bytes(value: object, where: str) -> bytes:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: must be text in base64")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ConfigError(f"{where}: is no base64: {error}") from error
