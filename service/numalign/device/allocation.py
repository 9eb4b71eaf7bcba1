"""Choosing device ids for one resource of one container (DEV-29..34).

Written without I/O: where the kubelet asks the plugin for its preference, `choose` yields
the question and is sent the answer, so that the rule reads from top to bottom. Where the
kubelet takes any device, the lowest ids are taken.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass

from numalign.device.layout import DeviceLayout
from numalign.model.ids import DeviceId, PodUid
from numalign.model.numa_mask import NumaMask


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Who asks for how many devices of which resource, and under which mask (None: any)."""

    pod_uid: PodUid
    container: str
    resource: str
    required: int
    mask: NumaMask | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What there is of the resource. `recorded` None: the container has no record of it.

    `healthy` None: no plugin has registered the resource. `already_running`: the container
    ran when the agent started and pods are still being read in (DEV-29 step 2).
    """

    layout: DeviceLayout
    healthy: frozenset[DeviceId] | None
    allocated: frozenset[DeviceId]
    reusable: frozenset[DeviceId]
    recorded: frozenset[DeviceId] | None
    already_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceQuestion:
    """What the plugin is asked: `size` ids of `available`, with `must_include` among them.

    Both are ascending. `must_include` is exactly what has been taken so far.
    """

    available: tuple[DeviceId, ...]
    must_include: tuple[DeviceId, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The outcome. `ids` (ascending) are taken, whether or not it failed (DEV-30).

    `begun`: taking began, which makes the resource one that is allocated from, even if
    nothing was taken. `failure` is the kubelet's text.
    """

    ids: tuple[DeviceId, ...] = ()
    begun: bool = False
    failure: str | None = None


Choosing = Generator[PreferenceQuestion, tuple[DeviceId, ...], Choice]


@dataclass(frozen=True, slots=True)
class Split:
    """Available devices by how they lie to the affinity (DEV-31)."""

    aligned: frozenset[DeviceId]
    unaligned: frozenset[DeviceId]
    no_affinity: frozenset[DeviceId]


def choose(demand: Demand, supply: Supply) -> Choosing:
    """Choose ids by the steps of DEV-29; yields at most one question to the plugin.

    No ids and no failure: there is nothing to do.
    """
    refusal = _refusal(demand, supply)
    if refusal is not None or supply.already_running:
        return Choice(failure=refusal)
    if supply.recorded is not None:
        return Choice()
    if demand.required == 0:
        return Choice()
    return (yield from _take(demand, supply, supply.healthy or frozenset()))


def split_by_affinity(
    available: Collection[DeviceId], layout: DeviceLayout, mask: NumaMask | None
) -> Split:
    """Split available devices by their NUMA nodes (DEV-31)."""
    if mask is None or not layout.has_topology:
        return Split(frozenset(), frozenset(), frozenset(available))
    # A device that reports -1 beside real nodes goes by the real ones.
    no_affinity = layout.nowhere.intersection(available)
    somewhere = frozenset(available) - no_affinity
    bits = layout.node_bits
    aligned = frozenset(device for device in somewhere if bits[device] & mask)
    return Split(aligned, somewhere - aligned, no_affinity)


def _refusal(demand: Demand, supply: Supply) -> str | None:
    """The failure of steps 1 and 3 to 5, if any; step 2 skips the latter."""
    recorded, healthy = supply.recorded, supply.healthy
    if recorded is not None and len(recorded) != demand.required:
        return (
            f'pod "{demand.pod_uid}" container "{demand.container}" changed request for '
            f'resource "{demand.resource}" from {len(recorded)} to {demand.required}'
        )
    if supply.already_running:
        return None
    if healthy is None:
        return f"cannot allocate unregistered device {demand.resource}"
    if not healthy:
        return f"no healthy devices present; cannot allocate unhealthy devices {demand.resource}"
    if recorded is not None and not recorded <= healthy:
        return (
            "previously allocated devices are no longer healthy; cannot allocate unhealthy "
            f"devices {demand.resource}"
        )
    return None


class _Taking:
    """The ids taken so far, and how many are still needed."""

    __slots__ = ("ids", "needed")

    def __init__(self, needed: int) -> None:
        self.needed = needed
        self.ids: set[DeviceId] = set()

    def satisfied_from(self, devices: Iterable[DeviceId]) -> bool:
        """Take the lowest ids until satisfied; whether that is so now."""
        for device in sorted(set(devices) - self.ids):
            self.ids.add(device)
            self.needed -= 1
            if self.needed == 0:
                return True
        return False

    def question(self, among: Iterable[DeviceId], size: int) -> PreferenceQuestion:
        """Ask about `among` and what is taken, keeping what is taken."""
        return PreferenceQuestion(
            available=tuple(sorted(self.ids.union(among))),
            must_include=tuple(sorted(self.ids)),
            size=size,
        )

    def choice(self, failure: str | None = None) -> Choice:
        return Choice(ids=tuple(sorted(self.ids)), begun=True, failure=failure)


def _take(demand: Demand, supply: Supply, healthy: frozenset[DeviceId]) -> Choosing:
    """Steps 7 to 12 of DEV-29."""
    taking = _Taking(demand.required)
    if taking.satisfied_from(supply.reusable):
        return taking.choice()
    available = healthy - supply.allocated
    if len(available) < taking.needed:
        return taking.choice(
            f"requested number of devices unavailable for {demand.resource}. "
            f"Requested: {taking.needed}, Available: {len(available)}"
        )
    split = split_by_affinity(available, supply.layout, demand.mask)
    if taking.needed < len(split.aligned):
        preferred = yield taking.question(split.aligned, demand.required)
        in_turn = [split.aligned.intersection(preferred), split.aligned]
    else:
        if taking.satisfied_from(split.aligned):
            return taking.choice()
        preferred = yield taking.question(available, demand.required)
        in_turn = [available.intersection(preferred), split.unaligned, split.no_affinity]
    if any(taking.satisfied_from(devices) for devices in in_turn):
        return taking.choice()
    return taking.choice(
        "unexpectedly allocated less resources than required. "
        f"Requested: {demand.required}, Got: {demand.required - taking.needed}"
    )
