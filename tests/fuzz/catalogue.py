"""All targets by name. A target is imported when it is asked for, so that an engine which
watches the code of a parser has to watch only that.
"""

from __future__ import annotations

from importlib import import_module

from tests.fuzz.target import Target

NAMES = (
    "pod_message",
    "pod_json",
    "manifest",
    "static_manifest",
    "quantity",
    "cpu_set",
    "config",
    "document",
    "machine_file",
    "sysfs",
    "wire",
    "hint_message",
    "cpu_checkpoint",
    "memory_checkpoint",
    "device_checkpoint",
    "allocation_checkpoint",
)


def target(name: str) -> Target:
    """The target called `name`."""
    found = import_module(f"tests.fuzz.targets.{name}").TARGET
    assert isinstance(found, Target)
    return found
