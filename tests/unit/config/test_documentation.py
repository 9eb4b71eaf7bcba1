"""The configuration page: its examples load, and it leaves no key out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from numalign.config.extension import EXTENSION_KEYS
from numalign.config.feature_gates import GATES
from numalign.config.settings import Settings
from numalign.document.text import parse_document
from numalign.machine.schema import machine_from_document

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLE, MACHINE, DEVICES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

Read = Callable[[str], Settings]


def test_worked_example(settings: Read) -> None:
    read = settings(EXAMPLE)

    assert read.warnings == ()
    assert read.cpu.reserved_milli_cpu == 4000
    reserved = sum(entry.limits["memory"].value() for entry in read.memory.reserved_memory)
    assert reserved == read.memory.node_allocatable_reservation["memory"].value()


def test_machine_and_devices(settings: Read) -> None:
    machine = machine_from_document(parse_document(MACHINE, "machine.yaml"))
    devices = "\n".join(f"  {line}" for line in DEVICES.splitlines())
    read = settings(f"numalign:\n  devices:\n{devices}\n")

    assert machine.node_ids() == (0, 1)
    assert read.devices[0].allocate_error == "out of order"


@pytest.mark.parametrize("key", EXTENSION_KEYS)
def test_every_key_is_described(key: str) -> None:
    assert re.search(rf"^\| `{key}[`.]", PAGE, re.MULTILINE)


@pytest.mark.parametrize("gate", GATES)
def test_every_gate_is_described(gate: str) -> None:
    row = re.search(rf"^\|[^|]*`{gate}`[^|]*\| `(true|false)`", PAGE, re.MULTILINE)

    assert row is not None
    assert (row[1] == "true") is GATES[gate].default
