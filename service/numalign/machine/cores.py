"""Physical cores and the caches that groups of them share, from the CPU directories of sysfs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from numalign.errors import ConfigError
from numalign.machine.online import CPU_DIRECTORY
from numalign.machine.tree import Tree
from numalign.model.cpu_set import CpuSet
from numalign.model.machine import Core

_LARGEST_CORE_CACHE_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of one NUMA node, and what was odd about them."""

    cores: tuple[Core, ...]
    warnings: tuple[str, ...] = ()


def cores_of(tree: Tree, cpus: Iterable[int]) -> Cores:
    """The cores that `cpus`, the online CPUs of one NUMA node, belong to, by lowest thread.

    Threads of a core are those that the kernel calls siblings; the core id is the kernel's.
    A CPU without a topology directory is left out, as a kubelet leaves it out. Raises
    ConfigError where the sibling lists of two CPUs contradict each other.
    """
    wanted = CpuSet.of(cpus)
    cores: list[Core] = []
    warnings: list[str] = []
    seen = CpuSet()
    for cpu in wanted:
        if cpu in seen:
            continue
        topology = f"{CPU_DIRECTORY}/cpu{cpu}/topology"
        core_id = tree.integer(f"{topology}/core_id")
        socket_id = tree.integer(f"{topology}/physical_package_id")
        if core_id is None or socket_id is None:
            warnings.append(f"CPU {cpu} has no core or socket id and is left out")
            continue
        threads = _threads(tree, cpu, f"{topology}/thread_siblings_list") & wanted
        if not threads.isdisjoint(seen):
            raise ConfigError(
                f"{tree.path(topology)}: CPUs {threads & seen} are threads of another core too"
            )
        seen |= threads
        cores.append(Core(id=core_id, socket_id=socket_id, threads=tuple(threads)))
    return Cores(_with_uncore_caches(tree, cores), (*warnings, *_shared_ids(cores)))


def _threads(tree: Tree, cpu: int, path: str) -> CpuSet:
    """The threads of the core of `cpu`, itself among them."""
    siblings = tree.cpu_list(path)
    if siblings is None:
        return CpuSet.of([cpu])
    if cpu not in siblings:
        raise ConfigError(
            f'{tree.path(path)}: CPU {cpu} is not among its own siblings "{siblings}"'
        )
    return siblings


def _shared_ids(cores: Iterable[Core]) -> Iterable[str]:
    """A kubelet tells cores apart by socket and core id, so it would merge these."""
    first: dict[tuple[int, int], Core] = {}
    for core in cores:
        other = first.setdefault((core.socket_id, core.id), core)
        if other is not core:
            yield (
                f"the cores of CPUs {other.threads[0]} and {core.threads[0]} have the same core id "
                f"{core.id} on socket {core.socket_id}; a kubelet takes them for one core"
            )


def _with_uncore_caches(tree: Tree, cores: list[Core]) -> tuple[Core, ...]:
    return tuple(
        replace(core, uncore_cache_id=_uncore_cache(tree, core, len(cores))) for core in cores
    )


def _uncore_cache(tree: Tree, core: Core, cores_in_node: int) -> int | None:
    """The id of the first cache above level 2 that is not the whole NUMA node's (CPU-11).

    A cache counts as the node's when as many CPUs share it as the node would have if all its
    cores had the threads of this one. Without an id from the kernel, the lowest CPU that
    shares the cache stands for it.
    """
    caches = f"{CPU_DIRECTORY}/cpu{core.threads[0]}/cache"
    for index in tree.numbered(caches, "index"):
        cache = f"{caches}/index{index}"
        level = tree.integer(f"{cache}/level")
        sharing = tree.cpu_list(f"{cache}/shared_cpu_list")
        if level is None or level <= _LARGEST_CORE_CACHE_LEVEL or not sharing:
            continue
        if len(sharing) == cores_in_node * len(core.threads):
            continue
        kernel_id = tree.integer(f"{cache}/id")
        return next(iter(sharing)) if kernel_id is None else kernel_id
    return None
