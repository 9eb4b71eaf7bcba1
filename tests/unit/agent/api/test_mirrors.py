"""When a mirror pod is made or deleted, and what it looks like (MIR-1, MIR-3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.api.pods import static_pod

from numalign_agent.api.mirrors import MirrorStep, NoMirror, mirror_of, mirror_step
from numalign_agent.pod import CONFIG_MIRROR, AgentPod

NODE: dict[str, Any] = {"metadata": {"name": "n", "uid": "node-uid"}}
STATIC = static_pod()
RIGHT = STATIC.annotated(**{CONFIG_MIRROR: "h1"})
WRONG = STATIC.annotated(**{CONFIG_MIRROR: "older"})
GOING = RIGHT.replacing("metadata", deletionTimestamp="2026-01-02T03:04:05Z")
NODE_GOING = {"metadata": {"uid": "node-uid", "deletionTimestamp": "2026-01-02T03:04:05Z"}}


@pytest.mark.parametrize(
    ("mirror", "node", "step"),
    [
        pytest.param(None, NODE, MirrorStep(delete=False, create=True), id="none"),
        pytest.param(RIGHT, NODE, MirrorStep(delete=False, create=False), id="right"),
        pytest.param(WRONG, NODE, MirrorStep(delete=True, create=True), id="of-an-older-manifest"),
        pytest.param(GOING, NODE, MirrorStep(delete=True, create=True), id="being-deleted"),
        pytest.param(None, None, MirrorStep(delete=False, create=False), id="node-unknown"),
        pytest.param(WRONG, None, MirrorStep(delete=True, create=False), id="wrong-node-unknown"),
        pytest.param(None, NODE_GOING, MirrorStep(delete=False, create=False), id="node-going"),
    ],
)
def test_the_next_step(mirror: AgentPod | None, node: Any, step: MirrorStep) -> None:
    assert mirror_step(STATIC, mirror, node) == step


def test_what_a_mirror_pod_looks_like() -> None:
    mirror = AgentPod(mirror_of(STATIC, "n", NODE))

    assert mirror.annotations[CONFIG_MIRROR] == "h1"
    assert mirror.metadata["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node-uid", "controller": True}
    ]
    assert mirror.spec == STATIC.spec
    assert (mirror.uid, mirror.name) == ("", STATIC.name)


def test_a_node_without_a_uid() -> None:
    with pytest.raises(NoMirror, match="UID unset for node n"):
        mirror_of(STATIC, "n", {"metadata": {}})
