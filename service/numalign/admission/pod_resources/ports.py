"""What the pod resources interface needs to know, whoever knows it.

Separate so that the servicers can be driven from recordings, and so that they do not depend
on how admissions are followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numalign.admission.pod_resources.values import Held, ListedPod
from numalign.model.ids import PodUid


class PodResourcesSource(Protocol):
    """The node's pods and what they hold, at the moment of a call."""

    async def active_pods(self) -> Sequence[ListedPod]:
        """Pods that have not ended (PR-4)."""

    async def all_pods(self) -> Sequence[ListedPod]:
        """Every pod that is known."""

    async def free_ended(self) -> None:
        """Have devices of pods that ended be free before a list is told (DEV-21)."""

    async def find(self, namespace: str, name: str) -> ListedPod | None:
        """The active pod of that name."""

    def held(self, pod_uid: PodUid, container: str) -> Held:
        """What a container holds; nothing for one that is not known (any more)."""

    async def allocatable(self) -> Held:
        """What the node can give out, given out or not (PR-12)."""
