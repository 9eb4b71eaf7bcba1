"""Sources by configuration, and the API side put together."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.fake_api.server import FakeApiServer
from tests.unit.agent.api.pods import until

from numalign.kube.core.v1 import core_pb2
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_agent.api.errors import ApiError
from numalign_agent.api.side import NodeCalls, connect_api
from numalign_agent.config.settings import (
    AgentSettings,
    ApiSettings,
    FileSourceSettings,
    HttpSourceSettings,
    KubeletSourceSettings,
)
from numalign_agent.sources.assembly import make_sources
from numalign_agent.sources.kubelet.pods_api import KubeletPodsApi
from numalign_agent.sources.kubelet.pods_url import KubeletPodsUrl


class Calls:
    def __init__(self) -> None:
        self.told: list[str] = []

    async def tell(self, node: core_pb2.Node) -> None:
        self.told.append(node.metadata.name)

    async def resources(self) -> NodeResources:
        return NodeResources()

    def all(self) -> NodeCalls:
        return NodeCalls(tell=self.tell, resources=self.resources, not_ready=lambda: None)


def settings(tmp_path: Path, kubelet: KubeletSourceSettings | None) -> AgentSettings:
    return AgentSettings(
        node_name="n",
        owner="agent",
        admission_socket=tmp_path / "socket",
        state_directory=tmp_path,
        file=FileSourceSettings(path=tmp_path),
        url=HttpSourceSettings(url="http://localhost/"),
        kubelet=kubelet,
    )


async def test_every_source_that_is_configured(fake: FakeApiServer, tmp_path: Path) -> None:
    api_settings = ApiSettings(kubeconfig=fake.kubeconfig(tmp_path / "kubeconfig"))
    api = await connect_api(api_settings, "n", "1", Calls().all())
    kubelet = KubeletSourceSettings(socket=tmp_path / "pods.sock")

    sources = make_sources(settings(tmp_path, kubelet), api)

    assert [source.name for source in sources] == ["file", "http", "api", "kubelet"]
    assert isinstance(sources[-1], KubeletPodsApi)
    assert all(source.problems() == {} for source in sources)
    await api.close()


def test_a_kubelet_by_its_url(tmp_path: Path) -> None:
    kubelet = KubeletSourceSettings(url="https://localhost:10250/pods")

    assert isinstance(make_sources(settings(tmp_path, kubelet), None)[-1], KubeletPodsUrl)


async def test_a_node_of_ones_own_is_registered_and_told(
    fake: FakeApiServer, tmp_path: Path
) -> None:
    calls = Calls()
    api_settings = ApiSettings(
        kubeconfig=fake.kubeconfig(tmp_path / "kubeconfig"), own_node=True, status_every=0.05
    )
    api = await connect_api(api_settings, "n", "1", calls.all())
    task = asyncio.create_task(api.run())
    await until(lambda: "n" in calls.told)
    await until(lambda: bool(fake.store.all("leases")))
    assert api.problems() == {}

    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await api.close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(None, "there is no such file; name another one", id="none"),
        pytest.param("", "", id="empty"),
        pytest.param("{}", "", id="bare"),
        pytest.param("a: [", "", id="bad"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(ApiError, match=f"kubeconfig {path}: cannot be used: {why}"):
        await connect_api(ApiSettings(kubeconfig=path), "n", "1", Calls().all())


async def test_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ApiError, match="service account: cannot be used"):
        await connect_api(ApiSettings(), "n", "1", Calls().all())
