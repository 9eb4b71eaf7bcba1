"""What third-party providers have forgotten of what the record says that they gave.

Only of providers that do not tell their books: they cannot be held to the record, so their
answers are. In memory: a provider that is met again says again what it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numalign.errors import Unavailable
from numalign.model.ids import PodUid

Part = tuple[str, str]
"""A resource and an id of it."""


class LostParts:
    """Devices that pods hold and their provider does not know of, by provider."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[Part, PodUid]] = {}

    def note(self, provider: str, holders: Mapping[Part, PodUid]) -> None:
        """The provider was met: this is all that it has forgotten."""
        self._holders[provider] = dict(holders)

    def released(self, pod_uids: Iterable[PodUid]) -> None:
        """These pods hold nothing any more."""
        gone = frozenset(pod_uids)
        for provider, holders in self._holders.items():
            self._holders[provider] = {p: uid for p, uid in holders.items() if uid not in gone}

    def refuse(self, provider: str, pod_uid: PodUid, given: Iterable[Part]) -> None:
        """Raise Unavailable where the provider gives the pod what it forgot that another has."""
        holders = self._holders.get(provider)
        if not holders:
            return
        for part in given:
            holder = holders.get(part, pod_uid)
            if holder != pod_uid:
                resource, name = part
                raise Unavailable(
                    f'hint provider {provider}: gave {resource} "{name}", which it gave pod '
                    f'"{holder}" before it restarted: it has lost its books'
                )
