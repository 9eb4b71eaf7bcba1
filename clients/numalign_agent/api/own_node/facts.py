"""What the machine says of itself for a Node object."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path

_KIB = 1024

# As Go, and so Kubernetes, calls processors.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One machine. Memory and storage in bytes; texts are empty where nothing is known."""

    hostname: str
    address: str
    architecture: str
    kernel: str
    os_image: str
    machine_id: str
    system_uuid: str
    boot_id: str
    memory: int
    storage: int
    version: str


def read_facts(version: str, root: Path = Path("/")) -> NodeFacts:
    """The facts of the machine whose file system begins at `root`. `version`: the agent's."""
    machine = platform.machine()
    space = os.statvfs(root)
    return NodeFacts(
        hostname=socket.gethostname(),
        address=_address(),
        architecture=_ARCHITECTURES.get(machine, machine),
        kernel=platform.release(),
        os_image=_os_image(root),
        machine_id=_text(root / "etc/machine-id"),
        system_uuid=_text(root / "sys/class/dmi/id/product_uuid"),
        boot_id=_text(root / "proc/sys/kernel/random/boot_id"),
        memory=_memory(root),
        storage=space.f_blocks * space.f_frsize,
        version=version,
    )


def _memory(root: Path) -> int:
    """All memory, bytes; 0 where the system does not say."""
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal":
            return int(rest.split()[0]) * _KIB
    return 0


def _os_image(root: Path) -> str:
    for line in _text(root / "etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return ""


def _address() -> str:
    """The address of the interface that leads elsewhere; empty where none does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # nothing is sent: a route is looked up
        except OSError:
            return ""
        return str(asking.getsockname()[0])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
