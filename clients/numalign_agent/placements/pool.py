"""Which CPUs each running container belongs on, while others come and go. Pure.

What Admission says of the shared CPUs may be older than what a container was just given, so
exclusive CPUs of containers that run here are taken out of it in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from numalign.model.cpu_set import CpuSet
from numalign_agent.runners.port import Placement


@dataclass(frozen=True, slots=True)
class Member:
    """A container that runs, or is about to.

    `own` are CPUs that it was given, `exclusive` if nobody else may have them; without `own` it
    follows the shared CPUs. `applied` is what its processes are on, "": not known.
    """

    pod_uid: str
    container: str
    own: str = ""
    exclusive: bool = False
    applied: Placement | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What Admission gave a pod: exclusive CPUs by container, and CPUs for the pod as a whole."""

    containers: Mapping[str, str]
    pod_cpus: str = ""


@dataclass(frozen=True, slots=True)
class CpuPool:
    """`said` are the shared CPUs as last heard, None: none are kept apart, or not heard yet.

    `members` are by container id, `given` by pod UID.
    """

    said: CpuSet | None
    members: Mapping[str, Member]
    given: Mapping[str, Given]

    def heard(self, cpus: str) -> CpuPool:
        """Admission says which CPUs are shared."""
        return replace(self, said=CpuSet.parse(cpus) if cpus else None)

    def with_given(self, pod_uid: str, given: Given) -> CpuPool:
        """Admission says what a pod was given; its containers belong there from now on."""
        known = replace(self, given={**self.given, pod_uid: given})
        members = {
            key: known.placed(member) if member.pod_uid == pod_uid else member
            for key, member in self.members.items()
        }
        return replace(known, members=members)

    def with_member(self, container_id: str, member: Member) -> CpuPool:
        """A container runs, or is about to."""
        return replace(self, members={**self.members, container_id: self.placed(member)})

    def without(self, container_ids: Iterable[str]) -> CpuPool:
        """Containers have ended."""
        gone = set(container_ids)
        rest = {key: member for key, member in self.members.items() if key not in gone}
        uids = {member.pod_uid for member in rest.values()}
        lost = {member.pod_uid for key, member in self.members.items() if key in gone} - uids
        given = {uid: given for uid, given in self.given.items() if uid not in lost}
        return replace(self, members=rest, given=given)

    def placed(self, member: Member) -> Member:
        """The member with what its pod was given, as far as that is known."""
        given = self.given.get(member.pod_uid)
        if given is None:
            return member
        own = given.containers.get(member.container, "")
        if own:
            return replace(member, own=own, exclusive=True)
        if not given.pod_cpus:
            return replace(member, own="", exclusive=False)
        left = CpuSet.parse(given.pod_cpus).bits
        for cpus in given.containers.values():
            left &= ~CpuSet.parse(cpus).bits
        return replace(member, own=str(CpuSet(left)), exclusive=False)

    @property
    def shared(self) -> CpuSet | None:
        """The CPUs that are really shared now."""
        if self.said is None:
            return None
        taken = 0
        for member in self.members.values():
            if member.exclusive:
                taken |= CpuSet.parse(member.own).bits
        return CpuSet(self.said.bits & ~taken)

    def moves(self) -> dict[str, Placement]:
        """The containers that are not where they belong, and where that is.

        Where no shared CPU is left they stay: a container has to run somewhere.
        """
        shared = self.shared
        moves = {}
        for container_id, member in self.members.items():
            target = member.own or ("" if shared is None else str(shared))
            applied = member.applied or Placement()
            if target and applied.cpus != target:
                moves[container_id] = replace(applied, cpus=target, exclusive_cpus=member.exclusive)
        return moves


NOTHING_KEPT_APART = CpuPool(None, {}, {})
