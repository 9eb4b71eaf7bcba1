"""What the author of an admit handler writes: a class with one method, `judge`.

Separate from the service around it, so that a handler can be tested with nothing but values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admit_handler_pb2 as ah


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitAttributes:
    """A pod to judge, and what numalign knows of its node.

    `is_resize`: the resources of an admitted pod are to change; `dry_run`: the caller only
    wants to know. `node` is None where no Node object is known. `node_conditions` are those that
    keep pods away, such as `MemoryPressure`. `allocated_devices` are handed out with what the
    pod would get, by resource; empty for a pod that asks for none, and in front of the Topology
    Manager.
    """

    pod: core_pb2.Pod
    is_resize: bool = False
    dry_run: bool = False
    node: core_pb2.Node | None = None
    node_conditions: tuple[str, ...] = ()
    shutting_down: bool = False
    other_pods: tuple[ah.OtherPod, ...] = ()
    allocated_devices: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admit:
    """Nothing against the pod, once the `victims` (UIDs of other pods) have ended, in order."""

    victims: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Reject:
    """The pod must not start here. `reason` is one word for its status, such as `NoLicence`."""

    reason: str
    message: str
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Defer:
    """Nothing is wrong with the pod, but it is too early; asked again in `retry_after` seconds."""

    reason: str
    message: str
    retry_after: float = 10.0
    warnings: Sequence[str] = ()


Judgement: TypeAlias = Admit | Reject | Defer | None
"""What a handler says; None admits."""


class SimpleAdmitHandler(ABC):
    """Judges pods. Subclass it, and run it with an `AdmitHandlerServer`.

    Calls come one at a time. A judgement has no effect: the pod may still be refused by
    others, may only be a dry run, and may be asked about again. An exception is no judgement:
    numalign's failure policy for the handler says what becomes of the pod.
    """

    name: ClassVar[str]

    @abstractmethod
    def judge(self, attributes: AdmitAttributes) -> Judgement:
        """What is said of the pod."""


class AsyncAdmitHandler(ABC):
    """The same for asyncio, run with an `AsyncAdmitHandlerServer`. Calls may overlap."""

    name: ClassVar[str]

    @abstractmethod
    async def judge(self, attributes: AdmitAttributes) -> Judgement:
        """What is said of the pod."""
