"""What a kernel shows of its machine, with odd values and things missing."""

from __future__ import annotations

import errno
import tarfile
from functools import lru_cache

from tests.fuzz.bending import MOST_BYTES
from tests.fuzz.choices import Choices
from tests.fuzz.memory_path import (
    Directory,
    Entry,
    as_path,
    directory_of,
    found_at,
    with_entry,
    without,
)
from tests.fuzz.recorded import FIXTURES
from tests.fuzz.target import Target

from numalign.errors import ConfigError
from numalign.machine.discover import discover

SMALL = 3
"""How many of the trees are made up here, and small; the others were captured."""

CAPTURED = tuple(sorted((FIXTURES / "sysfs").glob("*.tar.gz")))
TEXTS = (
    b"",
    b"\n",
    b"0",
    b"-1",
    b"1",
    b"63",
    b"64",
    b"0-3",
    b"3-0",
    b"0,2",
    b"0-",
    b"1048575",
    b"1048576",
    b"9" * 20,
    b"9" * 5000,
    b"x",
    b"\xff\xfe",
    b"\xd9\xa3",
    b"1_0",
    b"0x1",
    b"+1",
    b" 1 ",
    b"10 20",
    b"10 x",
    b"Node 0 MemTotal: 1 kB",
    b"MemTotal: 1 kB",
    b"MemTotal: x kB",
    b"MemTotal:",
    b"processor : 0\n\ncore id : 1",
)
ODD: tuple[Entry, ...] = (*TEXTS, {}, errno.EIO, errno.EACCES)
"""What stands in for a file."""


def _cpu(cpu: int, core: int, socket: int, siblings: str) -> dict[str, bytes]:
    base = f"sys/devices/system/cpu/cpu{cpu}"
    return {
        f"{base}/topology/core_id": b"%d" % core,
        f"{base}/topology/physical_package_id": b"%d" % socket,
        f"{base}/topology/thread_siblings_list": siblings.encode(),
        f"{base}/cache/index3/level": b"3",
        f"{base}/cache/index3/shared_cpu_list": siblings.encode(),
        f"{base}/cache/index3/id": b"%d" % socket,
        f"{base}/online": b"1",
    }


def _numa() -> dict[str, bytes]:
    files = {
        "sys/devices/system/node/online": b"0-1",
        "sys/devices/system/cpu/online": b"0-3",
        "sys/devices/system/cpu/present": b"0-3",
        "sys/devices/system/cpu/isolated": b"",
        "proc/meminfo": b"MemTotal: 4096 kB",
    }
    for node in range(2):
        base = f"sys/devices/system/node/node{node}"
        files |= {
            f"{base}/cpulist": b"%d-%d" % (2 * node, 2 * node + 1),
            f"{base}/meminfo": b"Node %d MemTotal: 2048 kB" % node,
            f"{base}/distance": b"10 20" if node == 0 else b"20 10",
            f"{base}/hugepages/hugepages-2048kB/nr_hugepages": b"4",
        }
        for cpu in (2 * node, 2 * node + 1):
            files |= _cpu(cpu, node, node, f"{2 * node}-{2 * node + 1}")
    return files


def _without_numa() -> dict[str, bytes]:
    kept = {name: text for name, text in _numa().items() if "/node/" not in name}
    return kept | {"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": b"1"}


def _cpuinfo() -> dict[str, bytes]:
    text = b"processor : 0\nphysical id : 0\ncore id : 0\n\nprocessor : 1\ncore id : 1\n"
    return {"proc/cpuinfo": text, "proc/meminfo": b"MemTotal: 4096 kB"}


def _captured(number: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(CAPTURED[number]) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                files[member.name] = content.read()
    return files


@lru_cache
def _tree(number: int) -> tuple[Directory, tuple[str, ...]]:
    """A tree and the paths of its files."""
    made_up = (_numa, _without_numa, _cpuinfo)
    files = made_up[number]() if number < SMALL else _captured(number - SMALL)
    return directory_of(files), tuple(files)


def run(data: bytes) -> None:
    """Discover a machine in a tree with a few changes."""
    choices = Choices(data)
    number = choices.byte()
    # Captured trees are large: one input in a hundred is enough.
    captured = SMALL + choices.byte() % 16 if number >= 253 else number % SMALL
    tree, paths = _tree(min(captured, SMALL + len(CAPTURED) - 1))
    for _ in range(4):
        if not choices:
            break
        tree = _edited(tree, choices.of(paths).split("/"), choices)
    machine = discover(as_path(tree)).machine
    threads = [cpu for node in machine.numa_nodes for core in node.cores for cpu in core.threads]
    assert len(set(threads)) == len(threads)


def _edited(tree: Directory, path: list[str], choices: Choices) -> Directory:
    """The tree with a change at the path of a file that it has, or had before other changes."""
    match choices.below(6):
        case 0:
            return without(tree, path)
        case 1:
            # The directory is gone or cannot be read, with everything in it.
            at = 1 + choices.below(len(path) - 1)
            unread = choices.byte() & 1
            return with_entry(tree, path[:at], errno.EACCES) if unread else without(tree, path[:at])
        case 2:
            return with_entry(tree, path, {"inside": b"1"})
        case 3:
            return with_entry(tree, path, choices.text().encode("utf-8", "surrogateescape"))
        case 4:
            # A file, or a directory with all its files, has another name.
            at = choices.below(len(path))
            odd = choices.of(("node64", "cpu70", "node-1", "cpu\u0663", "index9", "hugepages-xkB"))
            moved = found_at(tree, path[: at + 1])
            if moved is None:
                return tree
            return with_entry(without(tree, path[: at + 1]), [*path[:at], odd], moved)
        case _:
            return with_entry(tree, path, choices.of(ODD))


TARGET = Target(
    name="sysfs",
    run=run,
    documented=(ConfigError,),
    seeds=tuple(bytes((number,)) for number in range(256))
    + tuple(bytes((number % 3, number, 5, number)) for number in range(60)),
    most_bytes=MOST_BYTES,
    counts=False,
)
