"""What device plugins want changed in a container, as an adjustment of the runtime.

Looks at the host's device nodes, whose numbers a runtime wants to be told; the rest is
`plan.edits`.
"""

from __future__ import annotations

import os
from pathlib import Path

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.v1 import types_pb2 as pb
from numalign_agent.nri.plan.edits import device_mode, device_type, mount_options


class NoSuchDevice(Exception):
    """A device node that a container is to have cannot be given; the text says why."""


def apply_edits(adjust: nri.ContainerAdjustment, edits: pb.ContainerEdits, host_root: Path) -> None:
    """Add device nodes, mounts, environment, annotations and CDI names to an adjustment.

    Raises NoSuchDevice. Blocks as long as looking at device nodes takes.
    """
    for name, value in sorted(edits.envs.items()):
        adjust.env.add(key=name, value=value)
    for name, value in sorted(edits.annotations.items()):
        adjust.annotations[name] = value
    for mount in edits.mounts:
        adjust.mounts.add(
            destination=mount.container_path,
            source=mount.host_path,
            type="bind",
            options=mount_options(mount.read_only),
        )
    for node in edits.device_nodes:
        adjust.linux.devices.append(_device(node, host_root))
    for cdi in edits.cdi_devices:
        adjust.CDI_devices.add(name=cdi)


def _device(node: pb.DeviceNode, host_root: Path) -> nri.LinuxDevice:
    path = host_root / node.host_path.lstrip("/")
    try:
        found = path.stat()
    except OSError as error:
        raise NoSuchDevice(f"device {node.host_path}: {error.strerror}") from error
    kind = device_type(found.st_mode)
    if kind is None:
        raise NoSuchDevice(f"device {node.host_path}: is no device node")
    device = nri.LinuxDevice(
        path=node.container_path,
        type=kind,
        major=os.major(found.st_rdev),
        minor=os.minor(found.st_rdev),
    )
    device.file_mode.value = device_mode(found.st_mode, node.permissions)
    device.uid.value = found.st_uid
    device.gid.value = found.st_gid
    return device
