"""The first file system of the virtual machine: busybox, a few modules and one script.

The script makes the host's own tree the root, read-only, and runs one job in it.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_WANTED = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
"""Modules; those that a kernel has built in are passed over."""

_DIRECTORIES = ("bin", "dev", "modules", "newroot", "proc", "sys")
_EXECUTABLE, _DIRECTORY = 0o100755, 0o040755

JOB_ENDED = "the job ended with"

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod $module || echo "no module $module"; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /newroot
mount -t proc proc /newroot/proc
mount -t sysfs sys /newroot/sys
mount -t devtmpfs dev /newroot/dev
mkdir -p /newroot/dev/shm
mount -t tmpfs run /newroot/run
mount -t tmpfs shm /newroot/dev/shm
mount -t cgroup2 cgroup /newroot/sys/fs/cgroup
ip link set lo up
stty -F /dev/ttyS1 raw
chroot /newroot /bin/sh $(sed -n 's/.*vmjob=\\([^ ]*\\).*/\\1/p' /proc/cmdline) </dev/null
echo "JOB_ENDED $?"
poweroff -f
""".replace("JOB_ENDED", JOB_ENDED)


def initramfs(root: Path) -> bytes:
    """The archive, from the packages below `root`."""
    files: dict[str, bytes] = {
        "init": INIT.encode(),
        "bin/busybox": (root / "bin" / "busybox").read_bytes(),
    }
    for number, module in enumerate(_modules(root)):
        files[f"modules/{number:02}-{module.name.partition('.')[0]}.ko"] = _content(module)
    return gzip.compress(b"".join(_archive(files)), compresslevel=1)


def _modules(root: Path) -> list[Path]:
    """The files of the wanted modules, after those that they need."""
    (directory,) = (root / "lib" / "modules").iterdir()
    found = {_name(path): path for path in directory.rglob("*.ko*")}
    order: list[str] = []

    def add(name: str) -> None:
        if name in order or name not in found:
            return
        for needed in _needs(_content(found[name])):
            add(needed)
        order.append(name)

    for name in _WANTED:
        add(name)
    return [found[name] for name in order]


def _name(module: Path) -> str:
    return module.name.partition(".")[0].replace("-", "_")


def _needs(content: bytes) -> list[str]:
    """The modules that a module says it depends on."""
    text = content.partition(b"\0depends=")[2].partition(b"\0")[0]
    return [name.replace("-", "_") for name in text.decode("ascii").split(",") if name]


def _content(module: Path) -> bytes:
    data = module.read_bytes()
    return lzma.decompress(data) if module.suffix == ".xz" else data


def _archive(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """A cpio archive of the `newc` kind."""
    entries: Iterable[tuple[str, int, bytes]] = (
        *((name, _DIRECTORY, b"") for name in _DIRECTORIES),
        *((name, _EXECUTABLE, data) for name, data in files.items()),
        ("TRAILER!!!", 0, b""),
    )
    for number, (name, mode, data) in enumerate(entries, start=1):
        path = name.encode("ascii") + b"\0"
        numbers = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % value for value in numbers)
        yield _padded(header + path)
        yield _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
