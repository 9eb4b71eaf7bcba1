"""Pods that the tests of the API side begin from, and what a loop would say of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from numalign_agent.pod import AgentPod


def api_pod(name: str = "web", **metadata: Any) -> AgentPod:
    """A pod as an API server has it, from the API source."""
    annotations = {"kubernetes.io/config.source": "api", **metadata.pop("annotations", {})}
    return AgentPod(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "annotations": annotations,
                **metadata,
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )


def static_pod(name: str = "static", pod_hash: str = "h1") -> AgentPod:
    """A pod from a manifest."""
    pod = api_pod(name).annotated(
        **{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": pod_hash}
    )
    return pod.replacing("metadata", uid=pod_hash)


class Answers:
    """What the loop answers to a sink."""

    def __init__(self) -> None:
        self.pods: dict[str, AgentPod] = {}
        self.mirrors: dict[str, AgentPod] = {}
        self.running: set[str] = set()
        self.finished: set[str] = set()

    def pod(self, pod_uid: str) -> AgentPod | None:
        return self.pods.get(pod_uid)

    def mirror_of(self, pod: AgentPod) -> AgentPod | None:
        return self.mirrors.get(pod.full_name)

    def may_run(self, pod_uid: str) -> bool:
        return pod_uid in self.running

    def is_finished(self, pod_uid: str) -> bool:
        return pod_uid in self.finished


async def until(fits: Callable[[], bool]) -> None:
    """Wait, for a while, until something is so."""
    async with asyncio.timeout(60):
        while not fits():  # noqa: ASYNC110 - what is waited for is in another place each time
            await asyncio.sleep(0.01)
