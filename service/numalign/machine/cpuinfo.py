"""Cores from /proc/cpuinfo, where sysfs does not show any CPU."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.errors import ConfigError
from numalign.machine.tree import Tree
from numalign.model.machine import Core

_PATH = "proc/cpuinfo"


def cores_from_cpuinfo(tree: Tree) -> tuple[Core, ...]:
    """The cores, by lowest thread. A processor without a core id is a core of its own.

    Raises ConfigError where there is no such file or no processor in it.
    """
    text = tree.text(_PATH)
    if text is None:
        raise ConfigError(f"{tree}: neither sysfs nor {_PATH} shows any CPU")
    threads: dict[tuple[int, int], list[int]] = {}
    for block in text.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        cpu = _number(fields, "processor")
        if cpu is None:
            continue
        socket, core = _number(fields, "physical id"), _number(fields, "core id")
        threads.setdefault((socket or 0, cpu if core is None else core), []).append(cpu)
    if not threads:
        raise ConfigError(f"{tree.path(_PATH)}: lists no processor")
    return tuple(
        Core(id=core, socket_id=socket, threads=tuple(sorted(cpus)))
        for (socket, core), cpus in sorted(threads.items(), key=lambda item: min(item[1]))
    )


def _number(fields: Mapping[str, str], name: str) -> int | None:
    """The number in a field; None where the processor does not have it."""
    text = fields.get(name, "")
    return int(text) if text.isdecimal() else None
