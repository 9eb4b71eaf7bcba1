"""Why a safe node may differ from a recording of the kubelet: rules with names. Pure.

A difference is allowed only where one of these applies, and each looks at the values: that a
pod was not judged again, that the recorded books have something in them which nobody holds.
What differs for no such reason is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from numalign.device.awaiting import REASON as PLUGIN_NOT_READY
from numalign.model.cpu_set import CpuSet
from numalign.replay.compare import Cause, Difference
from numalign.replay.recordings import Json
from numalign.replay.settled import PodParts

JUDGED_AGAIN = Cause(
    "TM-52", "the kubelet decides again on an admitted pod; here it keeps what it has"
)
CPUS_LOST = Cause(
    "CPU-73", "the kubelet's books lack CPUs of a pod set that no container holds any more"
)
NODE_BY_NODE = Cause(
    "MEM-47", "the kubelet frees the memory of a group in node order, whoever booked it there"
)
NOT_YET = Cause(
    "DEV-47",
    "the kubelet refuses a pod whose device plugin is not back since the start; here it waits",
)
NODES_UNKNOWN = Cause(
    "DEV-T11",
    "the kubelet never aligns a device on a NUMA node that is not there; here that says nothing",
)
CELLS_KEPT = Cause("MEM-48", "the kubelet resets a group only where a node has no assignment left")
_START_CAUSES = (
    ("cpu_manager_start", "could not restore state", "CPU-29"),
    ("cpu_manager_start", "", "CPU-32"),
    ("memory_manager_start", "could not restore state", "MEM-73"),
    ("memory_manager_start", "", "MEM-74"),
)

_TABLE = re.compile(
    r"\.machine_memory_state\.(?P<node>\d+)\.memory\.(?P<resource>.+)\.(reserved|free)$"
)
_CELLS = re.compile(r"\.machine_memory_state\.\d+\.cells(\[\d+\])?$")


def start_cause(step: Json) -> Cause | None:
    """Why a start that the kubelet refuses over its old state goes through here."""
    for stage, beginning, rule in _START_CAUSES:
        if step.get("start_error_stage") == stage and step["start_error"].startswith(beginning):
            return Cause(rule, "the kubelet refuses to start over its old state; here it goes on")
    return None


def admission_cause(recorded: Json, replayed: Json, misplaced: Collection[str]) -> Cause | None:
    """Why a pod that is decided on for the first time may be decided otherwise.

    `misplaced` are the resources whose devices name only NUMA nodes that the machine lacks.
    """
    if _waits_for_plugin(recorded, replayed):
        return NOT_YET
    if _says_nothing_of_nodes(recorded, replayed, misplaced):
        return NODES_UNKNOWN
    return None


def _waits_for_plugin(recorded: Json, replayed: Json) -> bool:
    """Whether a pod is refused there and waits here, for a plugin that had not listed there."""
    there, here = recorded["expect"], replayed["expect"]
    if there["admitted"] or here["reason"] != PLUGIN_NOT_READY:
        return False
    return any(
        hints is None and f"plugin of {resource} " in here["message"]
        for _, resource, hints in _device_hints(recorded)
    )


def _says_nothing_of_nodes(recorded: Json, replayed: Json, misplaced: Collection[str]) -> bool:
    """Whether a misplaced resource fits nowhere there, and has no preference here."""
    here = {(place, resource): hints for place, resource, hints in _device_hints(replayed)}
    return any(
        resource in misplaced and hints == [] and here.get((place, resource), hints) is None
        for place, resource, hints in _device_hints(recorded)
    )


def _device_hints(admission: Json) -> Iterator[tuple[int, str, list[Json] | None]]:
    """The hints of the device provider: number of the merge, resource, hints."""
    for place, merge in enumerate(admission.get("hints", ())):
        for answer in merge["providers"]:
            if answer["provider"] == "device":
                for resource, hints in (answer["hints"] or {}).items():
                    yield place, resource, hints


@dataclass(frozen=True, slots=True)
class BookPair:
    """The books of both sides without inactive pods.

    `all_cpus` are those of the machine, `parts` what pods hold as a whole in the recording.
    """

    recorded: Json
    replayed: Json
    all_cpus: str
    parts: PodParts

    def cause(self, difference: Difference) -> Cause | None:
        """Why the recorded books differ at a place, where they themselves show it."""
        path = difference.path
        if path.endswith(".default_cpus") and self._cpus_lost():
            return CPUS_LOST
        table = _TABLE.search(path)
        if table is not None and self._group_agrees(table["node"], table["resource"]):
            return NODE_BY_NODE
        if _CELLS.search(path) and self._group_is_torn():
            return CELLS_KEPT
        return None

    def _cpus_lost(self) -> bool:
        """Whether the recorded books have CPUs neither shared nor held."""
        held = CpuSet.parse(self.recorded["default_cpus"]).bits
        for uid, containers in self.recorded["cpu_assignments"].items():
            for text in (*containers.values(), self.parts.cpus.get(uid, "")):
                held |= CpuSet.parse(text).bits
        return held != CpuSet.parse(self.all_cpus).bits

    def _group_agrees(self, node: str, resource: str) -> bool:
        """Whether the nodes booked together with `node` hold the same in sum."""
        left = self.recorded["machine_memory_state"]
        right = self.replayed["machine_memory_state"]
        group = {node}
        while True:
            wider = group | {
                str(cell)
                for tables in (left, right)
                for member in group
                for cell in tables[member]["cells"]
            }
            if wider == group:
                break
            group = wider
        return len(group) > 1 and all(
            sum(left[n]["memory"].get(resource, {}).get(key, 0) for n in group)
            == sum(right[n]["memory"].get(resource, {}).get(key, 0) for n in group)
            for key in ("reserved", "free")
        )

    def _group_is_torn(self) -> bool:
        """Whether a recorded node is in another group than the blocks over it say."""
        groups: dict[str, set[int]] = {}
        for containers in self.recorded["memory_assignments"].values():
            for blocks in containers.values():
                for block in blocks:
                    for node in block["numa_affinity"]:
                        groups.setdefault(str(node), {node}).update(block["numa_affinity"])
        return any(
            not groups.get(node, set()) <= set(tables["cells"])
            for node, tables in self.recorded["machine_memory_state"].items()
        )
