"""Mirror pods on an API server (MIR-1, MIR-3, MIR-5, MIR-6)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.fake_api.server import FakeApiServer
from tests.unit.agent.api.pods import static_pod

from numalign_agent.api.mirror_pods import ApiMirrorPods
from numalign_agent.api.server import ApiServer
from numalign_agent.pod import CONFIG_MIRROR, AgentPod

NODE: dict[str, Any] = {"metadata": {"name": "n", "uid": "node-uid"}}


@pytest.fixture
def mirrors(api: ApiServer) -> ApiMirrorPods:
    return ApiMirrorPods(api, "n", lambda: NODE)


def shown(fake: FakeApiServer) -> list[AgentPod]:
    return [AgentPod(pod) for pod in fake.store.all("pods")]


async def test_a_mirror_is_made_replaced_and_deleted(
    fake: FakeApiServer, mirrors: ApiMirrorPods
) -> None:
    await mirrors.reconcile(static_pod(), None)
    (first,) = shown(fake)
    assert first.annotations[CONFIG_MIRROR] == "h1"

    await mirrors.reconcile(static_pod(), first)
    assert shown(fake) == [first]

    await mirrors.reconcile(static_pod(pod_hash="h2"), first)
    (second,) = shown(fake)
    assert (second.annotations[CONFIG_MIRROR], second.uid != first.uid) == ("h2", True)

    await mirrors.delete(first)  # another one has taken its place
    assert shown(fake) == [second]
    await mirrors.delete(second)
    await mirrors.delete(second)  # it is gone already
    assert shown(fake) == []


async def test_one_that_is_gone_already_is_made_again(
    fake: FakeApiServer, mirrors: ApiMirrorPods
) -> None:
    await mirrors.reconcile(static_pod(), None)
    (first,) = shown(fake)
    fake.store.delete("pods", "default", first.name, {"gracePeriodSeconds": 0})

    await mirrors.reconcile(static_pod(pod_hash="h2"), first)

    assert [pod.annotations[CONFIG_MIRROR] for pod in shown(fake)] == ["h2"]


async def test_one_that_is_there_already_is_fine(
    fake: FakeApiServer, mirrors: ApiMirrorPods, capsys: pytest.CaptureFixture[str]
) -> None:
    await mirrors.reconcile(static_pod(), None)
    await mirrors.reconcile(static_pod(), None)
    assert "cannot create" not in capsys.readouterr().err

    await mirrors.reconcile(static_pod(pod_hash="h2"), None)
    assert "cannot create the mirror pod" in capsys.readouterr().err
    assert len(shown(fake)) == 1


async def test_a_server_that_is_away_is_logged_only(
    fake: FakeApiServer, mirrors: ApiMirrorPods, capsys: pytest.CaptureFixture[str]
) -> None:
    await fake.stop()
    await mirrors.reconcile(static_pod(), None)
    await mirrors.delete(static_pod())

    said = capsys.readouterr().err
    assert "cannot create the mirror pod" in said
    assert "cannot delete the mirror pod" in said
