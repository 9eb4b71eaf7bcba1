"""What `compatibility` means for the Topology Manager: a few choices made at start.

`safe` is numalign's own way, `kubelet` reproduces the kubelet's lifecycle with its faults.
Nothing else asks for the mode; each part is handed its choice.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyStrategies:
    """The choices.

    - `trusts_record`: an admitted pod that is asked about again keeps what it has; else it is
      judged again, as by a kubelet that restarted (TM-52).
    - `keeps_leftovers`: what a refused pod was given stays until the next clean-up (TM-45).
    - `one_by_one`: allocations are asked for in provider order and stop at the first failure,
      since a leftover of a later provider would be one too many.
    - `resizes_as_new`: a resize is asked of all of a pod as if it was new, so that init containers
      that have ended take again what they gave back, and a pod that is managed as a whole takes
      its share twice (CPU-78, MEM-T5); else only what runs is asked about.
    - `waits_for_sources`: nothing is cleaned up before an agent has said that its sources of
      pods are ready.
    """

    trusts_record: bool
    keeps_leftovers: bool
    one_by_one: bool
    resizes_as_new: bool
    waits_for_sources: bool


SAFE = TopologyStrategies(
    trusts_record=True,
    keeps_leftovers=False,
    one_by_one=False,
    resizes_as_new=False,
    waits_for_sources=False,
)
KUBELET = TopologyStrategies(
    trusts_record=False,
    keeps_leftovers=True,
    one_by_one=True,
    resizes_as_new=True,
    waits_for_sources=True,
)
