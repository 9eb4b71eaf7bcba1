"""Whether pods would fit a node, in this order: decided by real services over a copy of it.

The services run in this process over a directory of their own that is gone afterwards; they take
the copy back from its record of admitted pods, as they do after their state was lost. Nobody
outside is asked: devices are a list, third parties' providers and handlers are left out, and each
thing that is left out is named.

Imports every service. So a service that simulates does it in a process of its own
(`simulation_worker`), and imports none of this.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
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
from numalign.rpc.status import status_of
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

Inventory = Sequence[Mapping[str, Any]]
"""Devices as a configuration lists them."""

_OUTSIDE = ("listen", "sockets", "endpoints", "podResources", "kubeletConfigz", "metrics", "agent")
"""Keys of the `numalign` section that say how the node is reached, not how it decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What is simulated: a configuration with its machine inline, and who is admitted.

    `node` is a Node object that its Admission service is told; `notes` say what the copy cannot
    have of the node.
    """

    document: Mapping[str, Any]
    admissions: Sequence[tuple[pb.AdmissionRecord, bytes]] = ()
    node: core_pb2.Node | None = None
    notes: tuple[str, ...] = ()


def copy_of(
    configuration: Mapping[str, Any],
    admissions: Sequence[tuple[pb.AdmissionRecord, bytes]],
    inventory: Inventory | None,
    node_object: Path | core_pb2.Node | None = None,
    registered: Iterable[str] = (),
) -> Copy:
    """A copy of a node that nobody outside has a part in.

    `inventory` stands for device plugins, where the configuration has such. `node_object` is a
    file, or the object. `registered` are names of hint providers that the node asks, whether they
    are in the configuration or not. Raises ConfigError for a configuration whose sections are none.
    """
    section = _mapping(configuration, "numalign")
    notes: list[str] = []
    for key in _OUTSIDE:
        section.pop(key, None)
    providers = [provider.get("name") for provider in _mappings(section, "providers")]
    notes += [
        f"hint provider {name} is not asked" for name in dict.fromkeys((*providers, *registered))
    ]
    if section.pop("providersRegistry", None):
        notes.append("hint providers that are found by their sockets are not asked")
    admission = _mapping(section, "admission")
    notes += [
        f"admit handler {handler.get('name')} is not asked"
        for handler in _mappings(admission, "handlers")
    ]
    plugins = _mapping(section, "devicePlugins")
    if plugins.get("mode", "static") != "static":
        section["devices"] = list(inventory or ())
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
    if isinstance(node_object, Path):
        kept["node"] = str(node_object.absolute())
    elif node_object is None:
        notes.append("no Node object is given: the Topology Manager alone decides")
    section |= {"secondOwner": "tolerate", "journal": {"size": 0}, "admission": kept}
    return Copy(
        document={**configuration, "numalign": section},
        admissions=admissions,
        node=node_object if isinstance(node_object, core_pb2.Node) else None,
        notes=tuple(notes),
    )


def changed(
    configuration: Mapping[str, Any], policy: str, scope: str, *, with_node_devices: bool = False
) -> dict[str, Any]:
    """The configuration under another policy and scope; empty: as it is.

    With `with_node_devices` its devices are those of an inventory, whatever it says.
    """
    document = dict(configuration)
    if policy:
        document["topologyManagerPolicy"] = policy
    if scope:
        document["topologyManagerScope"] = scope
    if with_node_devices:
        section = _mapping(document, "numalign")
        document["numalign"] = {**section, "devicePlugins": {"mode": "host"}}
    return document


async def simulate(
    copy: Copy, pods: Iterable[core_pb2.Pod], explain: pb.ExplainLevel.ValueType
) -> list[ad.SimulatedPod]:
    """Decide on the pods in order, each beside those before it.

    Raises ConfigError and StartError where no node could run like this.
    """
    async with aclosing(simulated(copy, pods, explain)) as answers:
        return [answer async for answer in answers]


async def simulated(
    copy: Copy,
    pods: Iterable[core_pb2.Pod],
    explain: pb.ExplainLevel.ValueType,
    place: Path | None = None,
) -> AsyncGenerator[ad.SimulatedPod]:
    """The same, each as soon as it is decided.

    The copy keeps its files in the directory `place`, or where temporary files are.
    """
    async with _running(copy, place) as node:
        stub = AdmissionStub(node.channel(Service.ADMISSION))
        if copy.node is not None:
            await stub.SetNode(ad.SetNodeRequest(node=copy.node))
        for pod in pods:
            uid = pod.metadata.uid
            try:
                decision = await stub.Admit(ad.AdmitRequest(pod=pod, explain=explain))
            except AioRpcError as failed:
                code, message = status_of(failed)
                error = ad.StreamError(code=code.value[0], message=message)
                yield ad.SimulatedPod(pod_uid=uid, error=error)
            else:
                yield ad.SimulatedPod(pod_uid=uid, decision=decision)


@asynccontextmanager
async def _running(copy: Copy, place: Path | None) -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="numalign-", dir=place) as name:
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
        # Nobody listens there, and the path of a socket must not be long.
        "runtimeDirectory": "/run/numalign",
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


def inventory_of(devices: hp.DeviceState) -> Inventory:
    """The devices as the plugins last told of them, as an inventory."""
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
