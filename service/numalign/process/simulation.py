"""Whether pods would fit a node, in this order: decided by real services over a copy of it.

The services run in this process over a directory of their own that is gone afterwards; they take
the copy back from its record of admitted pods, as they do after their state was lost. Nobody
outside is asked: devices are a list, third parties' providers and handlers are left out, and each
thing that is left out is named.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpc.aio import AioRpcError

from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.errors import ConfigError, Unavailable
from numalign.kube.core.v1 import core_pb2
from numalign.model.ids import AdmissionId
from numalign.process.layout import state_name
from numalign.process.node import Node
from numalign.store.admission_store import AdmissionStore
from numalign.store.database import Database
from numalign.store.node_facts import NodeFacts
from numalign.telemetry.logs import get_logger
from numalign.topology.records import Admitted
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

_log = get_logger("simulation")

_LONGEST_SECONDS = 60
"""How long the copy may take to put its books in order: seconds, on a slow machine."""

_OUTSIDE = ("listen", "sockets", "endpoints", "podResources", "kubeletConfigz", "metrics", "agent")
"""Keys of the `numalign` section that say how the node is reached, not how it decides."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of one pod: a decision, or the error that there is instead."""

    decision: ad.AdmitResponse | None
    error: AioRpcError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What is simulated: a configuration with its machine inline, and who is admitted.

    `notes` say what the copy cannot have of the node.
    """

    document: Mapping[str, Any]
    admissions: Sequence[tuple[pb.AdmissionRecord, bytes]] = ()
    notes: tuple[str, ...] = ()


def copy_of(
    configuration: Mapping[str, Any],
    admissions: Sequence[tuple[pb.AdmissionRecord, bytes]],
    devices: hp.DeviceState | None,
    node_object: Path | None = None,
) -> Copy:
    """A copy of a node that nobody outside has a part in. `node_object` is a file.

    Raises ConfigError for a configuration whose sections are none.
    """
    section = _mapping(configuration, "numalign")
    notes: list[str] = []
    for key in _OUTSIDE:
        section.pop(key, None)
    notes += [
        f"hint provider {provider.get('name')} is not asked"
        for provider in _mappings(section, "providers")
    ]
    admission = _mapping(section, "admission")
    notes += [
        f"admit handler {handler.get('name')} is not asked"
        for handler in _mappings(admission, "handlers")
    ]
    plugins = _mapping(section, "devicePlugins")
    if plugins.get("mode", "static") != "static":
        section["devices"] = _static(devices)
        notes.append("device plugins are not asked: devices are chosen by their ids")
    if _mapping(section, "dra").get("enabled"):
        notes.append("resource claims are not prepared: pods are judged without them")
    for key in ("providers", "admission", "devicePlugins", "dra"):
        section.pop(key, None)
    if section.pop("compatibility", "safe") != "safe":
        notes.append("placement is the kubelet's, the faults of its lifecycle are left out")
    kept: dict[str, Any] = {
        key: admission[key] for key in ("chain", "declaredFeatures") if key in admission
    }
    if node_object is not None:
        kept["node"] = str(node_object.absolute())
    else:
        notes.append("no Node object is given: the Topology Manager alone decides")
    section |= {"secondOwner": "tolerate", "journal": {"size": 0}, "admission": kept}
    return Copy(
        document={**configuration, "numalign": section},
        admissions=admissions,
        notes=tuple(notes),
    )


async def simulate(
    copy: Copy, pods: Iterable[core_pb2.Pod], explain: pb.ExplainLevel.ValueType
) -> tuple[list[Simulated], ad.ListAdmissionsResponse]:
    """Decide on the pods in order, each beside those before it; then who is admitted.

    Raises ConfigError and StartError where no node could run like this.
    """
    outcomes = []
    async with _running(copy) as node:
        stub = AdmissionStub(node.channel(Service.ADMISSION))
        for pod in pods:
            request = ad.AdmitRequest(pod=pod, explain=explain)
            try:
                outcomes.append(Simulated(await stub.Admit(request)))
            except AioRpcError as error:
                outcomes.append(Simulated(None, error))
        listed = await stub.ListAdmissions(ad.ListAdmissionsRequest())
    return outcomes, listed


@asynccontextmanager
async def _running(copy: Copy) -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="numalign-") as name:
        directory = Path(name)
        settings = _settings(copy, directory)
        if copy.admissions:
            await _record(settings, copy.admissions)
        node = await Node.open(settings)
        try:
            await _ready(node)
            yield node
        finally:
            await node.close()


async def _ready(node: Node) -> None:
    """Wait until the copy decides on pods. Raises Unavailable where it does not come to that."""
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            await node.serving()
            for part in node.parts:
                await part.ready()
    except TimeoutError as error:
        raise Unavailable(
            f"the copy of the node was not ready within {_LONGEST_SECONDS} s: what its pods hold "
            "may be damaged; take the snapshot again"
        ) from error


def _settings(copy: Copy, directory: Path) -> Settings:
    config = directory / "config.json"
    config.write_text(json.dumps(copy.document), encoding="utf-8")
    places = {
        "runtimeDirectory": str(directory / "run"),
        "stateDirectory": str(directory / "state"),
    }
    return load_settings(config, {}, is_root=False, overrides=places)


async def _record(
    settings: Settings, admissions: Sequence[tuple[pb.AdmissionRecord, bytes]]
) -> None:
    database = Database.open(settings.state_directory, state_name(None), report=_log.warning)
    try:
        store = AdmissionStore(database)
        for record, pod in admissions:
            admitted = Admitted(AdmissionId(f"copy-{record.pod_uid}"), pod, record)
            await store.commit(admitted.row(), synced=False)
        await NodeFacts(database).note_whole_record()
    finally:
        await database.close()


def _mapping(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key) or {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key}: must be a mapping, not {value!r}")
    return dict(value)


def _mappings(document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = document.get(key) or []
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ConfigError(f"{key}: must be a list of mappings, not {value!r}")
    return value


def _static(devices: hp.DeviceState | None) -> list[dict[str, Any]]:
    """The devices as the plugins last told of them, as an inventory."""
    if devices is None:
        return []
    return [
        {
            "resource": resource.resource,
            "devices": [
                {
                    "id": device.id,
                    "healthy": device.healthy,
                    **({"numa_nodes": list(device.numa_nodes)} if device.has_topology else {}),
                }
                for device in resource.devices
            ],
        }
        for resource in devices.resources
    ]
