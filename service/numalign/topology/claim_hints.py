"""Where the devices of resource claims sit, as hints for where the rest of a container goes.

A kubelet has no such hints (DRA gives its Topology Manager none): they are a setting of ours.
What is claimed is allocated already, so its hints only say which sets of NUMA nodes touch every
device; nothing is allocated by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numalign.dra.container_devices import leads_to
from numalign.dra.naming import container_claims
from numalign.dra.values import ContainerReferences, PodClaims
from numalign.families.counts import fewest_nodes
from numalign.model.hint import FamilyList, HintList, Piece, Threshold
from numalign.model.numa_mask import mask_of
from numalign.topology.ports import ProviderAnswer

PROVIDER = "dra"
"""Name under which these hints stand among those of the providers."""


@dataclass(frozen=True, slots=True)
class PlacedDevice:
    """A device of a claim: the request that it is for, and the NUMA nodes that it sits on."""

    request: str
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class ClaimHints:
    """The hints of one pod. `devices` are by claim name, `machine` the NUMA nodes there are."""

    pod: PodClaims
    devices: Mapping[str, tuple[PlacedDevice, ...]]
    machine: tuple[int, ...]

    def answer(self, container: str | None) -> tuple[ProviderAnswer, ...]:
        """The hints for a container, or (None) for the pod as a whole; () if there are none.

        Raises ClaimProblem for an entry of the pod that does not lead to a claim yet.
        """
        wanted = [c for c in self.pod.containers if container in {None, c.name}]
        hints: dict[str, HintList] = {}
        for name, placed in self._devices_of(wanted).items():
            if placed:
                hints[f"claim:{name}"] = self._hints(placed)
        return (ProviderAnswer(PROVIDER, hints),) if hints else ()

    def _devices_of(
        self, containers: Iterable[ContainerReferences]
    ) -> Mapping[str, set[frozenset[int]]]:
        """By claim, the sets of nodes of which one has to be touched each."""
        found: dict[str, set[frozenset[int]]] = {}
        for container in containers:
            for claim in container_claims(self.pod, container):
                for device in self.devices.get(claim.name, ()):
                    nodes = device.nodes & frozenset(self.machine)
                    if nodes and any(leads_to(r, (device.request,)) for r in claim.requests):
                        found.setdefault(claim.name, set()).add(nodes)
        return found

    def _hints(self, placed: set[frozenset[int]]) -> FamilyList:
        must = mask_of(node for nodes in placed if len(nodes) == 1 for node in nodes)
        thresholds = tuple(
            Threshold(need=1, weights=tuple(int(node in nodes) for node in self.machine))
            for nodes in sorted(placed, key=sorted)
            if len(nodes) > 1
        )
        piece = Piece(ground=mask_of(self.machine), must=must, thresholds=thresholds)
        return FamilyList(pieces=(piece,), preferred_count=fewest_nodes(piece))
