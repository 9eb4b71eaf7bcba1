"""Where a run belongs, as Admission's events come in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numalign_agent.runners.port import Placement


@dataclass(frozen=True, slots=True)
class Belonging:
    """`own` are exclusive CPUs, empty: it follows the `shared` ones. `applied` is in force.

    `shared` is empty where Admission keeps none apart: then CPUs are left alone.
    """

    own: str
    shared: str
    applied: Placement

    @classmethod
    def begun(cls, placement: Placement) -> Belonging:
        """As a run was placed at first."""
        if placement.exclusive_cpus:
            return cls(placement.cpus, "", placement)
        return cls("", placement.cpus, placement)

    def heard_shared(self, cpus: str) -> Belonging:
        """The shared CPUs are these now."""
        return replace(self, shared=cpus)

    def heard_own(self, cpus: str) -> Belonging:
        """The run has these CPUs of its own now."""
        return replace(self, own=cpus)

    @property
    def move(self) -> Placement | None:
        """Where it has to be moved; None: it is where it belongs."""
        cpus = self.own or self.shared
        if not cpus or cpus == self.applied.cpus:
            return None
        return replace(self.applied, cpus=cpus, exclusive_cpus=bool(self.own))
