"""What is known of one pod and one container of the runtime.

Separate from the books that hold them: these are only what is remembered, without a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numalign_agent.nri.plan.drift import Actual
from numalign_agent.nri.plan.estimate import CgroupSettings
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.standing import Grants, Standing
from numalign_agent.pod import AgentPod


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A pod's sandbox as the runtime describes it. A pod may have had others before.

    `pid` is 0 where there is no process, and from runtimes that do not say.
    """

    id: str
    pod_uid: str
    name: str
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenContainer:
    """A container as the runtime describes it.

    `set_to` is what its settings say about its place, whoever set them. `created_at` orders
    containers by age, in nanoseconds from a moment that is the same for all; 0 is not known.
    """

    id: str
    name: str
    sandbox_id: str
    set_to: Pinning
    settings: CgroupSettings
    cgroups_path: str = ""
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """An admission as Admission has it: whose it is, of which revision, and what was given.

    `with_devices` are the containers that hold devices.
    """

    owner: str
    revision: int
    grants: Grants
    with_devices: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod was not admitted, in Admission's words."""

    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


@dataclass(slots=True)
class KnownContainer:
    """A container that is there.

    `given` is what is in force as far as known. A `foreign` one was placed by somebody else.
    `strayed` is set from when it was found where it should not be until it is put right.
    `stuck_at` is what should have come into force the last time, and what did instead.
    """

    seen: SeenContainer
    given: Pinning
    foreign: bool = False
    strayed: bool = False
    stuck_at: tuple[Pinning, Actual] | None = None

    @property
    def id(self) -> str:
        """Id in the runtime."""
        return self.seen.id

    @property
    def name(self) -> str:
        """Name in its pod."""
        return self.seen.name


@dataclass(frozen=True, slots=True)
class Idle:
    """A pod without containers is to be looked into at a time, and `pause` seconds after that."""

    look_at: float
    pause: float


@dataclass(slots=True)
class KnownPod:
    """A pod with at least one sandbox.

    `standing` is what was decided about it where no record says so. `document` is its object
    as some source had it. `judged` are containers that were asked about by themselves.
    `rests_since` is when its last sandbox stopped; None while one is up. `idle` is set when its
    last container has ended, with when to look into that and how long to wait after it. `order`
    counts up as pods are first seen.
    """

    uid: str
    name: str
    namespace: str
    order: int
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    containers: dict[str, KnownContainer] = field(default_factory=dict)
    standing: Standing = Standing.WAITING
    refusal: Refusal | None = None
    document: Mapping[str, Any] | None = None
    judged: set[str] = field(default_factory=set)
    rests_since: float | None = None
    idle: Idle | None = None

    @property
    def called(self) -> str:
        """`<namespace>/<name>`, as logs have it."""
        return f"{self.namespace}/{self.name}"

    @property
    def as_agent_pod(self) -> AgentPod:
        """The pod as far as it is known: what its sandbox says goes before its document.

        A mirror pod in the API has another uid than the static pod that runs, so the runtime's
        uid counts.
        """
        document = self.document or {}
        known = document.get("metadata") or {}
        labels, annotations = dict(known.get("labels") or {}), dict(known.get("annotations") or {})
        for sandbox in self.sandboxes.values():
            labels.update(sandbox.labels)
            annotations.update(sandbox.annotations)
        metadata = {
            **known,
            "uid": self.uid,
            "name": self.name,
            "namespace": self.namespace,
            "labels": labels,
            "annotations": annotations,
        }
        return AgentPod({**document, "metadata": metadata})
