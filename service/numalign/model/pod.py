"""A pod as the deciding parts see it: identity, containers in order, requests and limits.

Built from the wire message once per request, so that no decision reads protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.model.ids import PodUid
from numalign.model.quantity import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """A `resources` section: requests and limits by resource name, as written."""

    requests: Mapping[str, Quantity] = field(default_factory=dict)
    limits: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One init or app container. `restartable` marks a sidecar (restartPolicy Always)."""

    name: str
    resources: Resources = field(default_factory=Resources)
    is_init: bool = False
    restartable: bool = False

    @property
    def is_regular_init(self) -> bool:
        """An init container that ends before the next one starts."""
        return self.is_init and not self.restartable

    @property
    def is_sidecar(self) -> bool:
        """An init container that keeps running beside the app containers."""
        return self.is_init and self.restartable


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod. `resources` None means that the spec has no pod-level section.

    `claimed_resources` holds the (container name, resource name) pairs that a DRA claim
    backs (`status.extendedResourceClaimStatus.requestMappings`).

    The last two fields are no part of the value. Every step for a container asks for it by name and
    for the pod's QoS class, so a pod of thousands would be gone through as often again; what was
    found is kept here as long as the pod.
    """

    uid: PodUid
    name: str = ""
    namespace: str = ""
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    resources: Resources | None = None
    overhead: Mapping[str, Quantity] = field(default_factory=dict)
    status_qos_class: str = ""
    claimed_resources: frozenset[tuple[str, str]] = frozenset()
    by_name: dict[str, Container] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    computed_qos: dict[bool, str] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def all_containers(self) -> tuple[Container, ...]:
        """Init containers, then app containers, in the order they are decided (TM-39)."""
        return self.init_containers + self.containers

    def container(self, name: str) -> Container:
        """The init or app container called `name`; KeyError if there is none."""
        if not self.by_name:
            # Backwards, so that the first of two with the same name is the one that is found.
            for container in reversed(self.all_containers()):
                self.by_name[container.name] = container
        return self.by_name[name]
