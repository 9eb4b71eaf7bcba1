"""From where the configuration says the machine is described, to the machine."""

from __future__ import annotations

from numalign.config.settings import MachineFile, MachineInline, MachineRoot, MachineSource
from numalign.document.problems import DocumentError
from numalign.errors import ConfigError
from numalign.machine.discover import Discovered, discover
from numalign.machine.machine_file import described, read_machine_file
from numalign.machine.memory import memory_bytes
from numalign.machine.tree import Tree


def read_machine(source: MachineSource) -> Discovered:
    """The machine, and what the kernel says about it beyond the model.

    Raises ConfigError where it cannot be discovered or its description is wrong.
    """
    match source:
        case MachineRoot(path):
            return discover(path)
        case MachineFile(path):
            return described(read_machine_file(path))
        case MachineInline(machine):
            return described(machine)


def configured_machine(source: MachineSource) -> Discovered:
    """The machine of a configuration. Raises ConfigError that begins with the key at fault."""
    try:
        return read_machine(source)
    except ConfigError as error:
        key = {MachineRoot: ".root", MachineFile: ".file"}.get(type(source), "")
        lines = str(error).splitlines()
        raise DocumentError(*(f"numalign.machine{key}: {line}" for line in lines)) from error


def memory_capacity(source: MachineSource) -> int:
    """The memory of the machine in bytes, as a kubelet takes it for its capacity."""
    if isinstance(source, MachineRoot):
        memory = memory_bytes(Tree(source.path), "proc/meminfo")
        if memory is not None:
            return memory
    return configured_machine(source).memory_capacity
