"""The devices: one file each in a directory, named by its id; what it says is optional.

    numa_nodes: 0, 1        left out: nobody knows; empty: a topology without nodes
    health: Unhealthy       left out: Healthy
    node: /dev/fuse         a device node that a container with this device gets
    cdi: vendor.com/x=a     a CDI device that it gets

A device appears, changes and goes with its file. Files that begin with a dot are not devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp

HEALTHY = "Healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDevice:
    """One device. `numa_nodes` None: nobody knows where it is."""

    id: str
    path: Path
    numa_nodes: tuple[int, ...] | None = None
    health: str = HEALTHY
    node: str | None = None
    cdi: str | None = None

    def message(self) -> dp.Device:
        """The device as it is listed."""
        topology = None
        if self.numa_nodes is not None:
            topology = dp.TopologyInfo(nodes=[dp.NUMANode(ID=node) for node in self.numa_nodes])
        return dp.Device(ID=self.id, health=self.health, topology=topology)


def read_devices(directory: Path) -> dict[str, FileDevice]:
    """The devices by id, ascending. A file that goes away while it is read is no device.

    Raises ValueError naming the file and the line that cannot be understood.
    """
    devices = {}
    for path in sorted(directory.iterdir()):
        if path.name.startswith(".") or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        devices[path.name] = _device(path, text)
    return devices


def preferred(
    devices: Mapping[str, FileDevice], available: Iterable[str], must: Iterable[str], size: int
) -> list[str]:
    """`size` ids of `available`, `must` among them, on as few NUMA nodes as seems possible.

    First come those that must be, then the devices of the nodes that these are on, then those
    of the node with the most available devices.
    """
    chosen = list(must)
    others = sorted(set(available) - set(chosen))
    on_node = Counter(node for id_ in others for node in _nodes(devices, id_))
    used = {node for id_ in chosen for node in _nodes(devices, id_)}

    def rank(id_: str) -> tuple[bool, int, str]:
        nodes = _nodes(devices, id_)
        return used.isdisjoint(nodes), -max((on_node[node] for node in nodes), default=0), id_

    return (chosen + sorted(others, key=rank))[: max(size, len(chosen))]


def _nodes(devices: Mapping[str, FileDevice], id_: str) -> tuple[int, ...]:
    device = devices.get(id_)
    return () if device is None else device.numa_nodes or ()


def _device(path: Path, text: str) -> FileDevice:
    said = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon or key.strip() not in {"numa_nodes", "health", "node", "cdi"}:
            raise ValueError(f"{path}: {line!r} is not understood")
        said[key.strip()] = value.strip()
    nodes = said.get("numa_nodes")
    return FileDevice(
        id=path.name,
        path=path,
        numa_nodes=(
            None if nodes is None else tuple(int(node) for node in nodes.replace(",", " ").split())
        ),
        health=said.get("health", HEALTHY),
        node=said.get("node"),
        cdi=said.get("cdi"),
    )
