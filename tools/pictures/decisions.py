"""What numalign decides about a cell: `numalign simulate`, asked for JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from numalign.cli.main import cli
from numalign.model.cpu_set import CpuSet
from pictures.scenes import Cell


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that a container got on a group of NUMA nodes."""

    pod: str
    nodes: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Who has which CPU as (pod, container), the memory, and what became of the last pod."""

    owners: Mapping[int, tuple[str, str]]
    memory: tuple[Block, ...]
    verdict: str
    reserved: frozenset[int]


RESERVED = "0,8"


def outcome_of(cell: Cell, machine: Mapping[str, Any]) -> Outcome:
    """Ask about the cell's pods on an empty node with this machine."""
    settings = {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": RESERVED,
        "evictionHard": {"memory.available": "100Mi"},
        **cell.settings,
    }
    with tempfile.TemporaryDirectory() as place:
        files = {
            "machine.yaml": yaml.safe_dump(dict(machine)),
            "config.yaml": yaml.safe_dump(settings),
            "pods.yaml": yaml.safe_dump_all(pod.manifest() for pod in cell.pods),
        }
        for name, text in files.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        under = ["--machine", f"{place}/machine.yaml", "--under", f"{place}/config.yaml"]
        command = ["simulate", *under, "--explain", "none", "-o", "json", f"{place}/pods.yaml"]
        done = CliRunner().invoke(cli, command, prog_name="numalign")
    if done.exit_code not in {0, 3}:
        raise RuntimeError(f"{cell.caption}: {done.output}") from done.exception
    return _read(json.loads(done.stdout)["pods"])


def _read(answers: list[dict[str, Any]]) -> Outcome:
    owners: dict[int, tuple[str, str]] = {}
    memory: list[Block] = []
    for answer in answers:
        name = answer["pod"]["name"]
        for held in answer["decision"].get("allocations", ()):
            for cpu in CpuSet.parse(held["cpus"]):
                owners[cpu] = (name, held["container"])
            for block in held["memory"]:
                nodes = tuple(block["numaNodes"])
                memory.append(Block(name, nodes, int(block["size"])))
    last = answers[-1]["decision"]
    reserved = frozenset(CpuSet.parse(RESERVED))
    return Outcome(owners, tuple(memory), _verdict(last), reserved)


def _verdict(decision: Mapping[str, Any]) -> str:
    if decision["verdict"] != "VERDICT_ADMITTED":
        return f"refused: {decision['reason']}"
    affinity = {
        (held["affinity"]["mask"], held["affinity"]["preferred"])
        for held in decision["allocations"]
        if "mask" in held.get("affinity", {})
    }
    if not affinity:
        return "admitted"
    masks = sorted({int(mask) for mask, _ in affinity})
    sets = " and ".join("{" + ",".join(_bits(mask)) + "}" for mask in masks)
    preferred = all(preferred for _, preferred in affinity)
    return f"admitted on {sets}" + ("" if preferred else ", not preferred")


def _bits(mask: int) -> list[str]:
    return [str(bit) for bit in range(mask.bit_length()) if mask >> bit & 1]
