"""Machine files: a machine described by hand, captured on another node, or made up.

A file holds the machine itself or has it under a `machine` key, as recordings do. What
`numalign machine` prints is such a file, too: what it says beside the machine is of the node that
it was printed on, and is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from numalign.document.problems import DocumentError, Problems
from numalign.document.section import Section
from numalign.document.text import read_document
from numalign.machine.discover import Discovered
from numalign.machine.schema import document_of_machine, read_machine_section
from numalign.model.machine import Machine

BESIDE_MACHINE = ("isolatedCpus", "offlineCpus", "pods", "cpu", "memory", "device")
"""What `numalign machine` prints beside the machine."""


def read_machine_file(path: Path) -> Machine:
    """The machine in a file; JSON if the name ends in `.json`, else YAML.

    Raises DocumentError naming the file, and every mistake with its path in it.
    """
    return machine_from_document(read_document(path), str(path))


def machine_from_document(document: object, name: str) -> Machine:
    """The machine in a decoded document; `name` is what errors call it.

    Raises DocumentError naming every mistake with its path.
    """
    problems = Problems()
    section = Section(document, "", problems)
    if "machine" in section:
        section.refuse_unknown(("machine", *BESIDE_MACHINE))
        section = section.section("machine")
    machine = read_machine_section(section)
    if problems:
        raise DocumentError(*(f"{name}: {sentence}" for sentence in problems.sentences()))
    return machine


def write_machine_file(path: Path, machine: Machine) -> None:
    """Write `machine` to a file, in the form that its name asks for."""
    document = {"machine": document_of_machine(machine)}
    if path.name.endswith(".json"):
        text = json.dumps(document, indent=1) + "\n"
    else:
        text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100)
    path.write_text(text, encoding="utf-8")


def described(machine: Machine) -> Discovered:
    """A described machine as if discovered: nothing isolated, nothing offline."""
    return Discovered(
        machine=machine,
        memory_capacity=sum(node.memory_bytes for node in machine.numa_nodes),
    )
