"""What the answers of a URL mean, one after the other (CFG-10 to CFG-12).

Separate from asking, so that answers can be played one by one.
"""

from __future__ import annotations

from numalign_agent.manifests.errors import ManifestError, NotAPod
from numalign_agent.manifests.manifest import (
    READ_LIMIT,
    READ_LIMIT_REACHED,
    read_pod,
    read_pod_list,
)
from numalign_agent.manifests.placing import Origin
from numalign_agent.pod import AgentPod
from numalign_agent.sources.reading import Reading

_OK = 200


class Answers:
    """The answers of one URL. A body that was seen already says nothing again.

    That holds for one that could not be used, too, and for one with an empty body in between.
    `unusable` says what is wrong with the latest body; empty when nothing is.
    """

    def __init__(self, url: str, node_name: str) -> None:
        self._url = url
        self._origin = Origin(node_name, url, is_url=True)
        self._seen = b""
        self.unusable = ""

    def take(self, status: int, phrase: str, body: bytes) -> Reading:
        """One answer: its HTTP status in number and words, and up to READ_LIMIT + 1 bytes."""
        if status != _OK:
            return Reading(error=f"{self._url}: {status} {phrase}")
        if len(body) > READ_LIMIT:
            return Reading(error=READ_LIMIT_REACHED)
        if not body:
            self.unusable = ""
            return Reading((), error=f"zero-length data received from {self._url}")
        if body == self._seen:
            return Reading()
        self._seen, self.unusable = body, ""
        try:
            return Reading(self._pods(body))
        except ManifestError as error:
            self.unusable = str(error)
            return Reading(error=self.unusable)

    def _pods(self, body: bytes) -> tuple[AgentPod, ...]:
        try:
            return (read_pod(body, self._origin),)
        except NotAPod as single:
            try:
                return read_pod_list(body, self._origin)
            except NotAPod as several:
                raise ManifestError(
                    f"{self._url}: couldn't parse as single ({single.why}) "
                    f"or multiple pods ({several.why})"
                ) from several
