"""Pod specs from the API server, one pod at a time."""

from __future__ import annotations

from numalign_agent.api.errors import ApiError
from numalign_agent.api.failures import explained
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.nri.pod_specs.port import PodDocument, SourceFailed, Wanted


class ApiSpecs:
    """Reads a pod by its name; a static pod is found by its mirror, which has another uid."""

    name = "api"

    def __init__(self, api: PodApi) -> None:
        self._api = api

    async def find(self, wanted: Wanted) -> PodDocument | None:
        """The pod as the API has it. Raises SourceFailed."""
        try:
            document = await self._api.read(wanted.namespace, wanted.name)
        except ApiError as error:
            raise SourceFailed(explained(error)) from error
        # Of the same name there may be another pod: the next of its StatefulSet, for one.
        return document if document is not None and wanted.is_shown_by(document) else None

    async def close(self) -> None:
        """The API server is closed by whoever has opened it."""
